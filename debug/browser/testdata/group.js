(() => {
  const count = (selector) => document.querySelectorAll(selector).length;
  const rows = (caption) => [...document.querySelectorAll("table")]
    .find((table) => table.caption.textContent === caption)?.querySelectorAll("tbody tr:has(th)") ?? [];
  const cells = (row) => [...row.cells].map((cell) => cell.textContent.trim());
  const view = {
    members: {},
    moving: count(".grid circle"),
    uncovered: count(".grid .uncovered"),
    nobody: count(".grid .nobody"),
    text: document.querySelector("dl")?.textContent ?? "",
    problems: [...document.querySelectorAll(".problems li")].map((item) => item.textContent.trim()),
    odd: rows("Slots that move, or are not covered, or late").length,
  };
  for (const row of rows("Members")) {
    const [identity, , state, slots] = cells(row);
    const color = row.querySelector(".key rect").getAttribute("class");
    view.members[identity] = { state, slots: Number(slots), drawn: count(`.grid .${color}`) };
  }
  return view;
})()
