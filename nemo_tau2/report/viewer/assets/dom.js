// Elements from plain values. Text is only ever set as text: no markup is parsed from data.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. `attributes` may hold listeners (functions); null and false leave one out. */
function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** A table with a caption; the first cell of a row is its header. Cells are text or elements. */
function dataTable(caption, heads, rows, className = "") {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: className },
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows.map((cells) => h("tr", {},
        cells.map((cell, i) => (i ? h("td", {}, cell) : h("th", { scope: "row" }, cell))))))));
}

/** A labelled choice; `options` are values or [value, text]. */
function choice(label, options, value, onChange, attributes = {}) {
  const select = h("select", { change: () => onChange(select.value), ...attributes },
    options.map((option) => {
      const [key, text] = Array.isArray(option) ? option : [option, option];
      return h("option", { value: key, selected: String(key) === String(value) }, text);
    }));
  return h("label", { class: "field" }, label, " ", select);
}

const words = (name) => String(name).replaceAll("_", " ");
/** +1 or −1 where the two decimals shown have a sign, else 0. */
const sign = (x) => (Math.abs(x) >= 0.005 ? Math.sign(x) : 0);
const signed = (x) => (typeof x === "number" ? ["−", "", "+"][sign(x) + 1] + Math.abs(x).toFixed(2) : "–");
const fixed = (x, digits = 2) => (typeof x === "number" ? x.toFixed(digits) : "–");
const percent = (x) => (typeof x === "number" ? `${(100 * x).toFixed(1)} %` : "–");
const say = (text) => { document.getElementById("status").textContent = text; };
