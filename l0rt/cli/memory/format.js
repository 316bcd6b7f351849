// SPDX-License-Identifier: Apache-2.0
// Texts of numbers, and elements of the page. A text of the snapshot only ever becomes a text node.

const $ = (id) => document.getElementById(id);

/** A size in the largest binary unit that leaves at least one, with two decimals. */
function sizeText(bytes) {
  for (const [unit, factor] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (bytes >= factor) return `${(bytes / factor).toFixed(2)} ${unit}`;
  }
  return `${bytes} bytes`;
}

/** A whole number with its thousands apart. */
const countText = (number) => number.toLocaleString("en-US");

/** A number of things, with their name. */
const plural = (number, name) => `${countText(number)} ${name}${number === 1 ? "" : "s"}`;

/** A time since the first entry, from µs. */
function timeText(us) {
  if (us >= 1e6) return `${(us / 1e6).toLocaleString("en-US", { minimumFractionDigits: 3, maximumFractionDigits: 3 })} s`;
  return us >= 1e3 ? `${(us / 1e3).toFixed(3)} ms` : `${us} µs`;
}

function hexText(low, high) {
  return `0x${((BigInt(high) << 32n) | BigInt(low)).toString(16)}`;
}

/** An element with attributes and children; children that are no elements are texts. */
function make(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "color") made.style.background = value;
    else if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

/** Colours of the style, for canvases; asked again when light and dark change. */
const colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["back", "panel", "text", "soft", "line", "mark", "reserved", "cached", "pending", "accent", "scrub"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
  colours.slots = Array.from({ length: SLOTS }, (_, k) => style.getPropertyValue(`--c${k}`).trim());
  colours.isDark = matchMedia("(prefers-color-scheme: dark)").matches;
}

/** The number that a pixel of a colour #rrggbb is in an ImageData of 32 bits. */
function pixelOf(colour, alpha = 255) {
  const value = parseInt(colour.slice(1), 16);
  return ((alpha << 24) | ((value & 255) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

/** Make a canvas as sharp as the screen, and return what draws in units of CSS pixels, its width and its height. */
function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  const wanted = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== wanted[0] || canvas.height !== wanted[1]) [canvas.width, canvas.height] = wanted;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return [pen, width, height];
}

/** Cut a text to a width in pixels; characters of the canvas's font are all as wide. */
function fitted(text, width, advance) {
  const most = Math.floor(width / advance);
  if (text.length <= most) return text;
  return most < 3 ? "" : `${text.slice(0, most - 1)}…`;
}

/** Show a tip beside the pointer, or none. */
function tip(text, event) {
  const shown = $("tip");
  shown.hidden = !text;
  if (!text) return;
  shown.textContent = text;
  const x = Math.min(event.clientX + 14, innerWidth - shown.offsetWidth - 8);
  const below = event.clientY + 18;
  shown.style.left = `${Math.max(4, x)}px`;
  shown.style.top = `${below + shown.offsetHeight > innerHeight ? Math.max(4, event.clientY - shown.offsetHeight - 10) : below}px`;
}

/** The first place of an ordered array that has at least a value. */
function lowerBound(array, value, low = 0, high = array.length) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (array[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
