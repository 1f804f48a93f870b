/**
 * Makes an element. Texts become text nodes, so that no text from a model or a visitor is read as HTML.
 *
 * @param {string} tag
 * @param {Object<string, string | boolean | null>} [attributes] null and false omit one; true sets an empty value
 * @param {...(Node | string)} children
 */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for pictures. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

/** The same for formulas. */
export function math(tag, attributes = {}, ...children) {
  return filled(document.createElementNS('http://www.w3.org/1998/Math/MathML', tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, '');
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}
