// Keyboard shortcuts of the visible tab, with a list of them. Keys typed into a field are not shortcuts.

const FIELDS = "textarea, select, [contenteditable], input:not([type=radio], [type=checkbox], [type=range], [type=button])";

function keyList(root, keys) {
  const acts = new Map(keys.flatMap(([names, , act]) => [names].flat().map((name) => [name, act])));
  document.addEventListener("keydown", (event) => {
    const act = acts.get(event.key);
    if (!act || !root.offsetParent || event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.defaultPrevented) return;
    if (event.target.closest && event.target.closest(FIELDS)) return;
    event.preventDefault();
    act(event.key);
  });
  const entry = ([names, words]) => span("wb-key-entry", [names].flat().map((name) => h("kbd", {}, name)), ` ${words}`);
  return h("p", {class: "tv-small wb-key-list", "aria-label": "keys"}, keys.map(entry));
}
