// Keys of a tab, while it is seen: what each does stands in a list that can be seen as well. Whoever writes into a field writes.

const WRITES = "textarea, select, [contenteditable], input:not([type=radio], [type=checkbox], [type=range], [type=button])";

function keyList(root, keys) {
  const acts = new Map(keys.flatMap(([names, , act]) => [names].flat().map((name) => [name, act])));
  document.addEventListener("keydown", (event) => {
    const act = acts.get(event.key);
    if (!act || !root.offsetParent || event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.defaultPrevented) return;
    if (event.target.closest && event.target.closest(WRITES)) return;
    event.preventDefault();
    act(event.key);
  });
  const told = ([names, words]) => span("wb-key-told", [names].flat().map((name) => h("kbd", {}, name)), ` ${words}`);
  return h("p", {class: "tv-small wb-key-list", "aria-label": "keys"}, keys.map(told));
}
