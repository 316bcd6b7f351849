// SPDX-License-Identifier: Apache-2.0
// What ties the parts together: the device, the moment, the search and the choice, and when something is drawn.

class View {
  async open() {
    readColours();
    this.common = new Common(await unpack(0));
    document.title = `Memory: ${this.common.name}`;
    $("file").textContent = `${this.common.name}, by l0rt ${this.common.version}`;
    this.devices = new Map();
    this.moment = 0;
    this.chosen = null;
    this.common.devices.forEach((name, k) => $("device").append(make("option", { value: k }, name)));
    this.timeline = new Timeline(this);
    this.segments = new SegmentMap(this);
    this.flame = new Flame(this);
    this.details = new Details(this);
    this.listen();
    $("problem").hidden = true;
    document.querySelector("main").hidden = false;
    await this.select(0);
  }

  async select(number) {
    if (!this.devices.has(number)) this.devices.set(number, new Device(await unpack(number + 1)));
    this.device = this.devices.get(number);
    if (this.device.tags.length < 2 && $("colour").value === "tag") $("colour").value = "function";
    $("timeline").setAttribute("aria-valuemax", this.device.entries);
    this.choose(null);
    this.group();
    this.find();
    this.moment = this.device.entries ? this.device.peakMoment : 0;
    this.timeline.reset();
    this.segments.reset();
    this.flame.reset();
    this.draw();
    document.documentElement.dataset.ready = number;
  }

  group() {
    this.groups = new Groups(this.common, this.device, $("colour").value);
    $("legend").replaceChildren(...this.groups.names.map((name, slot) =>
      make("li", { title: name }, make("span", { class: "swatch", color: `var(--c${slot})` }), name)),
    make("li", {}, make("span", { class: "swatch", color: "var(--pending)" }), "freed, in use by streams"),
    make("li", {}, make("span", { class: "swatch", color: "var(--cached)" }), "not allocated"),
    make("li", {}, make("span", { class: "swatch", color: "var(--reserved)" }), "reserved (line)"));
    this.timeline.stale = true;
  }

  find() {
    this.search = new Search(this.common, this.device, $("search").value);
    this.timeline.stale = true;
  }

  /** Move to a moment. */
  go(moment) {
    this.moment = Math.min(Math.max(Math.round(moment), 0), this.device.entries);
    this.timeline.reveal(this.moment);
    this.later();
  }

  choose(k) {
    this.chosen = k;
    this.details.show(k);
    this.later();
  }

  later() {
    if (this.asked || !this.device) return;
    this.asked = true;
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.asked = false;
    const { device, moment } = this;
    this.timeline.draw();
    this.segments.draw();
    this.flame.draw();
    this.details.draw();
    $("entry").textContent = device.entryText(moment);
    $("moment").textContent = `${countText(moment)} of ${countText(device.entries)} entries, ${timeText(device.timeAt(moment))}`;
    const slider = $("timeline");
    slider.setAttribute("aria-valuenow", moment);
    slider.setAttribute("aria-valuetext", `${device.entryText(moment)}; allocated ${sizeText(device.allocated[moment])}`);
  }

  allocationText(k) {
    const { device, common } = this;
    const tag = device.tags.length > 1 ? `, ${device.tags[device.tag[k]]}` : "";
    return `${sizeText(device.size[k])} at ${device.addressText(k)}, stream ${device.streams[device.stream[k]]}${tag}\n` +
      `${common.functionOf(device.node[k])} ${common.placeOf(device.node[k])}`;
  }

  listen() {
    const { timeline } = this;
    const on = (id, call, name = "click") => $(id).addEventListener(name, call);
    on("peak", () => this.go(this.device.peakMoment));
    on("back", () => this.go(this.moment - 1));
    on("forth", () => this.go(this.moment + 1));
    on("closer", () => timeline.zoom(0.5));
    on("wider", () => timeline.zoom(2));
    on("all", () => timeline.showAll());
    on("device", () => this.select(Number($("device").value)), "change");
    on("colour", () => { this.group(); this.later(); }, "change");
    on("axis", () => {
      timeline.isTime = $("axis").value === "time";
      timeline.showAll();
    }, "change");
    let waiting = 0;
    on("search", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => { this.find(); this.later(); }, 120);
    }, "input");
    addEventListener("resize", () => { timeline.stale = true; this.later(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      readColours();
      timeline.stale = true;
      this.later();
    });
    addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const isField = event.target.matches?.("input, select");
    if (event.key === "Escape") {
      event.target.blur?.();
      $("search").value = "";
      this.find();
      this.choose(null);
    } else if (!isField) {
      const step = Math.max(Math.round(this.device.entries / 100), 1);
      const keys = {
        ArrowLeft: () => this.go(this.moment - (event.shiftKey ? 10 : 1)),
        ArrowRight: () => this.go(this.moment + (event.shiftKey ? 10 : 1)),
        PageUp: () => this.go(this.moment - step),
        PageDown: () => this.go(this.moment + step),
        Home: () => this.go(0),
        End: () => this.go(this.device.entries),
        p: () => this.go(this.device.peakMoment),
        "/": () => $("search").focus(),
        "+": () => this.timeline.zoom(0.5),
        "-": () => this.timeline.zoom(2),
        0: () => this.timeline.showAll(),
      };
      const call = keys[event.key];
      const isElsewhere = event.target !== document.body && event.target !== $("timeline");
      if (!call || (isElsewhere && /^(Page|Home|End|Arrow)/.test(event.key))) return;
      event.preventDefault();
      call();
    }
  }
}

const view = new View();
window.l0rt = view;
view.open().catch((error) => {
  document.querySelector("main").hidden = true;
  $("problem").hidden = false;
  $("problem").textContent = `This page cannot be shown: ${error.message}. It needs a browser of 2023 or later.`;
});
