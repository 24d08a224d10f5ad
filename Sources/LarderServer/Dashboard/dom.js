// Elements. Every text becomes a text node, so that a key or a tag is never parsed as HTML.
const SVG = "http://www.w3.org/2000/svg";

// `name` is a tag with classes: "p.muted". Attributes and handlers can follow.
export const make = (name, ...rest) => build(document.createElement(name.split(".")[0]), name, rest);
export const draw = (name, ...rest) => build(document.createElementNS(SVG, name.split(".")[0]), name, rest);

function build(element, name, rest) {
  const classes = name.split(".").slice(1).join(" ");
  if (classes) element.setAttribute("class", classes);
  const attributes = rest[0]?.constructor === Object ? rest.shift() : {};
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (key === "value") element.value = value ?? "";
    else if (value || value === 0) element.setAttribute(key, value === true ? "" : value);
  }
  return fill(element, rest);
}

const fill = (element, children) => {
  element.append(...children.flat(Infinity).filter((child) => child || child === 0));
  return element;
};

export function replace(element, ...children) {
  element.replaceChildren();
  return fill(element, children);
}

// An unchanged text stays: its selection too, and it is not announced again.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// An element that is equal to the new one stays, with its focus and its handlers.
export function setContent(element, content) {
  if (!(content instanceof Node)) return setText(element, String(content ?? ""));
  // What the user has unfolded stays so.
  if (element.firstChild?.open) content.open = true;
  if (!element.firstChild?.isEqualNode(content)) element.replaceChildren(content);
}

export function setStyle(element, property, value) {
  element.style.setProperty(property, value);
  return element;
}
