// SPDX-License-Identifier: Apache-2.0
// Figures of the moment, the table of the largest live allocations, and all about one that the reader has chosen.

const ROWS = 60;

/** The numbers of the largest allocations that are alive, the largest first; those that a search finds. */
function largest(device, moment, search) {
  const kept = []; // in ascending order
  let total = 0, count = 0;
  const { size } = device;
  device.eachAlive(moment, (k) => {
    if (search.isOn && !search.hits[k]) return;
    total += size[k];
    count++;
    if (kept.length === ROWS && size[k] <= size[kept[0]]) return;
    let place = 0;
    while (place < kept.length && size[kept[place]] < size[k]) place++;
    kept.splice(place, 0, k);
    if (kept.length > ROWS) kept.shift();
  });
  return [kept.reverse(), total, count];
}

class Details {
  constructor(view) {
    this.view = view;
    this.body = $("table").tBodies[0];
    this.rows = Array.from({ length: ROWS }, () => {
      const cells = ["number", "", "", "", "number", ""].map((name) => make("td", name ? { class: name } : {}));
      const row = make("tr", { tabindex: "0", hidden: "" }, ...cells);
      row.addEventListener("click", () => view.choose(row.allocation));
      row.addEventListener("keydown", (event) => { if (event.key === "Enter") view.choose(row.allocation); });
      this.body.append(row);
      return row;
    });
    this.figures = ["Allocated", "Reserved", "Not allocated", "Live allocations", "Peak allocated"].map((name) => {
      const value = make("dd", {});
      $("figures").append(make("div", {}, make("dt", {}, name), value));
      return value;
    });
  }

  draw() {
    const { device, moment, search, common } = this.view;
    const [found, total, count] = largest(device, moment, search);
    const allocated = device.allocated[moment], reserved = device.reserved[moment], pending = device.pending[moment];
    const everything = search.isOn ? this.countAlive() : count;
    this.put(0, sizeText(allocated), pending ? `and ${sizeText(pending)} freed, in use by streams` : `${countText(allocated)} bytes`);
    this.put(1, sizeText(reserved), `${countText(reserved)} bytes`);
    const rest = reserved - allocated - pending;
    this.put(2, rest < 0 ? "unknown" : sizeText(rest), rest < 0 ? "the history has no segments" : reserved ? `${((100 * rest) / reserved).toFixed(1)} % of what is reserved` : "");
    this.put(3, countText(everything), search.isOn ? `${countText(count)} found, ${sizeText(total)}` : "");
    this.put(4, sizeText(device.allocated[device.peakMoment]), `${countText(device.allocated[device.peakMoment])} bytes, entry ${countText(device.peakMoment)}`);
    $("found").textContent = search.isOn ? `${plural(count, "live allocation")} found, ${sizeText(total)}` : "";
    $("table-text").textContent = count > ROWS ? `${ROWS} of ${countText(count)}` : "";
    this.rows.forEach((row, place) => {
      row.hidden = place >= found.length;
      if (row.hidden) return;
      const k = found[place];
      row.classList.toggle("chosen", k === this.view.chosen);
      if (row.allocation === k && row.of === device) return;
      row.allocation = k;
      row.of = device;
      const texts = [sizeText(device.size[k]), device.addressText(k), device.tags[device.tag[k]], device.streams[device.stream[k]],
        device.born[k] ? countText(device.born[k]) : "before", `${common.functionOf(device.node[k])}  ${common.placeOf(device.node[k])}`];
      texts.forEach((text, cell) => { row.cells[cell].textContent = text; });
    });
  }

  countAlive() {
    let count = 0;
    this.view.device.eachAlive(this.view.moment, () => { count++; });
    return count;
  }

  put(place, text, more) {
    this.figures[place].replaceChildren(text, make("small", {}, more));
  }

  /** Show all about an allocation, null for none. */
  show(k) {
    const { device, common } = this.view, shown = $("details");
    if (k === null) {
      shown.replaceChildren(make("p", {}, "Choose a block of the segments or a row of the table."));
      return;
    }
    const never = device.entries + 1;
    const facts = [
      ["size", `${sizeText(device.size[k])} (${countText(device.size[k])} bytes)`],
      ["address", device.addressText(k)],
      ["tag", device.tags[device.tag[k]]],
      ["stream", device.streams[device.stream[k]]],
      ["allocated", device.born[k] ? `entry ${countText(device.born[k])}, ${timeText(device.timeAt(device.born[k]))}` : "before the first entry"],
      ["freed", device.freed[k] < never ? `entry ${countText(device.freed[k])}, ${timeText(device.timeAt(device.freed[k]))}` : "not before the end"],
    ];
    if (device.freed[k] < never && device.born[k]) {
      facts.push(["lived", `${timeText(device.timeAt(device.freed[k]) - device.timeAt(device.born[k]))}, ${plural(device.freed[k] - device.born[k], "step")}`]);
    }
    if (device.freed[k] < device.done[k]) {
      facts.push(["reusable", device.done[k] < never ? `entry ${countText(device.done[k])}` : "not before the end"]);
    }
    const list = make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
    const stack = (title, node) => (node ? [make("dt", {}, title), make("ol", {}, ...common.path(node).map((one) => make("li", {}, common.functionOf(one), " ", make("span", {}, common.placeOf(one)))))] : []);
    const buttons = make("p", { class: "buttons" },
      make("button", { click: () => this.view.go(device.born[k]) }, "Go to its beginning"),
      ...(device.freed[k] < never ? [make("button", { click: () => this.view.go(device.freed[k]) }, "Go to its end")] : []));
    shown.replaceChildren(list, buttons, ...stack("Allocated by, innermost call first", device.node[k]), ...stack("Freed by", device.free_node[k]));
  }
}
