"use strict";

// Staleness: a bar says since when there is no answer, and the figures are grey.
const refreshPeriod = 2000, answerTimeout = 5000;
const staleBar = document.getElementById("stale");
const age = (since) => `${Math.round((Date.now() - since) / 1000)} s`;
const timeOfFigures = () => document.querySelector("#figures time").textContent;
const showStale = (text, isGrey) => {
  document.title = (isGrey ? "(no answer) " : "") + document.title.replace(/^\(no answer\) /, "");
  document.body.classList.toggle("stale", isGrey);
  staleBar.hidden = !text;
  if (staleBar.textContent !== text) staleBar.textContent = text;
};

// Figures: the parts of the page that have them are fetched again every two seconds, unless
// something in them is typed or selected.
const partsOf = (page) => [...page.querySelectorAll("[data-refresh]")];
const main = document.querySelector("[data-refresh=main]");
if (main) {
  let answered = Date.now(), refusal = "", failed = false, isAsking = false;
  const isInUse = () => {
    const selection = getSelection();
    return !selection.isCollapsed && main.contains(selection.anchorNode) ||
      main.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");
  };
  const say = () => {
    const isLate = Date.now() - answered > 3 * refreshPeriod;
    if (failed || isLate && !isInUse()) {
      showStale(`${refusal || "No answer"} for ${age(answered)}: figures of ${timeOfFigures()}`, true);
    } else {
      showStale(isLate ? `Not refreshed while you select or type: figures of ${timeOfFigures()}` : "", false);
    }
  };
  // keep gives a new part what the user has done in the old one.
  const keep = (old, next) => {
    for (const opened of old.querySelectorAll("details[data-key]")) {
      const same = [...next.querySelectorAll("details[data-key]")].find((d) => d.dataset.key === opened.dataset.key);
      if (same) same.open = opened.open;
    }
  };
  // focused returns a function that finds the element that has the focus in another version of a part.
  const focused = (part) => {
    const at = document.activeElement;
    if (!part.contains(at)) return () => null;
    const all = (of) => [...of.querySelectorAll(at.tagName)];
    const name = (e) => `${e.getAttribute("href")} ${e.closest("details")?.dataset.key} ${e.dataset.copy}`;
    const n = all(part).filter((e) => name(e) === name(at)).indexOf(at);
    return (next) => all(next).filter((e) => name(e) === name(at))[n];
  };
  const refresh = async () => {
    if (document.hidden || isAsking || isInUse()) return;
    isAsking = true;
    refusal = "";
    try {
      const answer = await fetch(location.href, {
        headers: { Accept: "text/html" }, cache: "no-store", signal: AbortSignal.timeout(answerTimeout),
      });
      if (!answer.ok) refusal = `The answer is ${answer.status} ${answer.statusText}`.trim();
      const next = partsOf(new DOMParser().parseFromString(await answer.text(), "text/html"));
      const parts = partsOf(document);
      if (!answer.ok || next.length !== parts.length) throw new Error("no figures");
      parts.forEach((part, i) => {
        const find = focused(part);
        keep(part, next[i]);
        part.replaceChildren(...next[i].childNodes);
        find(part)?.focus({ preventScroll: true });
      });
      answered = Date.now();
      failed = false;
    } catch {
      failed = true;
    }
    isAsking = false;
    say();
  };
  setInterval(refresh, refreshPeriod);
  setInterval(say, 1000);
  document.addEventListener("visibilitychange", refresh);
}

// Find: the keys that contain what is typed.
const find = document.getElementById("key"), found = document.getElementById("found");
let typing = 0;
find.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(async () => {
    const answer = await fetch("keys?" + new URLSearchParams({ text: find.value })).catch(() => null);
    if (!answer?.ok) return;
    found.replaceChildren(...(await answer.json()).map((key) => new Option(key, key)));
  }, 150);
});

// Copy: a click on a command selects it, and copies it where the browser allows that.
document.addEventListener("click", async (event) => {
  const command = event.target.closest("[data-copy]");
  if (!command) return;
  getSelection().selectAllChildren(command);
  try {
    await navigator.clipboard.writeText(command.textContent);
    getSelection().removeAllRanges();
    command.dataset.copied = "copied";
  } catch {
    // it is selected
  }
});

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
    const kind = cell("td", change.type);
    kind.className = change.type.toLowerCase();
    const last = cell("td", change.secret ? "(a Secret)" : "");
    last.append(fields);
    if (change.moreFields) last.append(`and ${change.moreFields} more`);
    made.append(cell("td", new Date(change.at).toISOString().slice(11, 23)), kind, key, last);
    const headings = rows.closest("table").tHead.rows[0].cells;
    [...made.cells].forEach((c, i) => {
      if (c.tagName !== "TD") return;
      const content = document.createElement("div");
      content.append(...c.childNodes);
      c.append(content);
      c.dataset.label = headings[i].textContent;
    });
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
  let lost = 0;
  const sayLost = () => showStale(lost ? `No connection for ${age(lost)}: changes of before` : "", lost > 0);
  setInterval(sayLost, 1000);
  events.onopen = () => {
    lost = 0;
    sayLost();
    say("connected");
  };
  events.onerror = () => {
    lost ||= Date.now();
    sayLost();
    say("no connection");
  };
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
