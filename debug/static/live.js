"use strict";

// Figures: the part of the page that has them is fetched again every two seconds, unless something
// in it has the focus or is selected.
const refreshPeriod = 2000;
const refreshed = document.querySelector("[data-refresh]");
if (refreshed) {
  setInterval(async () => {
    if (document.hidden || refreshed.contains(document.activeElement) || !getSelection().isCollapsed) return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const next = page.querySelector("[data-refresh]");
      if (next) refreshed.replaceChildren(...next.childNodes);
      document.title = document.title.replace(/^\(no answer\) /, "");
    } catch {
      document.title = "(no answer) " + document.title.replace(/^\(no answer\) /, "");
    }
  }, refreshPeriod);
}

// Changes: rows come as server-sent events, the newest first.
const shownRows = 500;
const live = document.getElementById("live");
if (live) {
  const rows = document.querySelector("#changes tbody");
  const pause = document.getElementById("pause");
  const status = document.getElementById("status");
  const counts = { shown: 0, skipped: 0, held: [] };
  let paused = false;

  const cell = (name, text) => {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  };
  const row = (change) => {
    const made = document.createElement("tr");
    const key = cell("th", "");
    key.scope = "row";
    const link = cell("a", change.key);
    link.href = "key?key=" + encodeURIComponent(change.key);
    key.append(link);
    const fields = document.createElement("ul");
    for (const f of change.fields || []) {
      const values = f.old || f.new ? `: ${f.old || ""} → ${f.new || ""}` : "";
      fields.append(cell("li", f.path + values));
    }
    const last = cell("td", change.secret ? "(a Secret)" : "");
    last.append(fields);
    if (change.moreFields) last.append(`and ${change.moreFields} more`);
    made.append(cell("td", new Date(change.at).toISOString().slice(11, 23)), cell("td", change.type), key, last);
    return made;
  };
  const say = (connection) => {
    status.textContent = `${connection}: ${counts.shown} changes` +
      (counts.skipped ? `, ${counts.skipped} more came too fast` : "") +
      (paused ? `, ${counts.held.length} wait` : "");
  };
  const show = (change) => {
    counts.shown++;
    rows.prepend(row(change));
    while (rows.children.length > shownRows) rows.lastChild.remove();
  };
  const query = new URLSearchParams({ informer: live.dataset.informer, filter: live.dataset.filter });
  const events = new EventSource("stream?" + query);
  events.onopen = () => say("connected");
  events.onerror = () => say("no connection");
  events.onmessage = (event) => {
    const change = JSON.parse(event.data);
    if (!paused) show(change);
    else if (counts.held.length < shownRows) counts.held.push(change);
    else counts.skipped++;
    say("connected");
  };
  events.addEventListener("skipped", (event) => { counts.skipped += Number(event.data); });
  pause.hidden = false;
  pause.onclick = () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", paused);
    pause.textContent = paused ? "Go on" : "Pause";
    if (!paused) counts.held.splice(0).forEach(show);
    say("connected");
  };
}
