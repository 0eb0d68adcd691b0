(() => {
  const wrong = [];
  const visible = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const all = (selector) => [...document.querySelectorAll(selector)].filter(visible);
  const shown = (e) => e.outerHTML.slice(0, 100);

  // Names and structure.
  if (!document.documentElement.lang) wrong.push("the page has no language");
  if (!document.title) wrong.push("the page has no title");
  if (all("h1").length !== 1) wrong.push(`${all("h1").length} headings of the first level`);
  if (all("main").length !== 1) wrong.push("there is no main part");
  for (const e of all("input, select, button")) {
    const name = e.labels?.[0]?.textContent || e.getAttribute("aria-label") || e.textContent;
    if (!name.trim()) wrong.push(`no name: ${shown(e)}`);
  }
  for (const e of all("a")) if (!e.textContent.trim()) wrong.push(`a link without a text: ${shown(e)}`);
  for (const e of all("svg, img")) if (!e.ariaHidden && !e.ariaLabel && !e.alt) wrong.push(`no name: ${shown(e)}`);
  for (const e of all("table")) if (!e.caption?.textContent.trim()) wrong.push(`no caption: ${shown(e)}`);
  for (const e of all("th")) if (!e.scope) wrong.push(`no scope: ${shown(e)}`);
  const ids = all("[id]").map((e) => e.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push(`two elements have the id ${id}`);

  // Width: the page itself does not scroll sideways.
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) wrong.push(`it is ${root.scrollWidth} pixels wide, of ${root.clientWidth}`);

  // Nothing is cut off, except what scrolls by itself.
  for (const e of all("main *, header *")) {
    if (e.closest("svg, pre, thead, caption.hidden, option, input, .plot") || getComputedStyle(e).display === "inline") continue;
    const style = getComputedStyle(e);
    if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && style.overflowX !== "visible" && innerWidth < 768) {
      wrong.push(`it is ${e.scrollWidth} pixels wide, of ${e.clientWidth}: ${shown(e)}`);
    }
    const at = e.getBoundingClientRect();
    if (innerWidth < 768 && at.right > innerWidth + 1) wrong.push(`it ends at ${at.right}, of ${innerWidth}: ${shown(e)}`);
  }
  // On a narrow screen, a cell has its label.
  if (innerWidth < 768) {
    for (const e of all("tbody td:not([colspan])")) {
      if (!e.dataset.label) wrong.push(`no label: ${shown(e)}`);
    }
  }

  // Contrast, as WCAG 2.2 (1.4.3) computes it.
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const linear = [r, g, b].map((c) => (c /= 255, c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const background = (e) => {
    for (; e; e = e.parentElement) {
      const color = channels(getComputedStyle(e).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  for (const e of all("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent.trim())) continue;
    const [a, b] = [luminance(channels(getComputedStyle(e).color)), luminance(background(e))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) wrong.push(`a contrast of ${contrast.toFixed(1)}: ${shown(e)}`);
  }
  return wrong;
})()
