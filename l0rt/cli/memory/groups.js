// SPDX-License-Identifier: Apache-2.0
// Which colour an allocation has: by its tag, the function that allocated it, or its stream; and what a search finds.

const SLOTS = 10; // the last one is for all groups that have no colour of their own
const OTHERS = SLOTS - 1;

/** Groups of the allocations of a device: a slot for each allocation, and the names of the slots. */
class Groups {
  constructor(common, device, by) {
    this.by = by;
    const keys = by === "function" ? functionKeys(common, device) : device[by];
    const nameOf = by === "function" ? (key) => common.functionOf(key) : (key) => (by === "tag" ? device.tags[key] : `stream ${device.streams[key]}`);
    let most = 0;
    for (let k = 0; k < device.count; k++) if (keys[k] > most) most = keys[k];
    // Colours go to those that have the most bytes at the peak, then to those that have the largest sum.
    const atPeak = new Float64Array(most + 1), ever = new Float64Array(most + 1);
    device.eachAlive(device.peakMoment, (k) => { atPeak[keys[k]] += device.size[k]; });
    for (let k = 0; k < device.count; k++) ever[keys[k]] += device.size[k];
    const order = [...ever.keys()].filter((key) => ever[key] > 0).sort((a, b) => atPeak[b] - atPeak[a] || ever[b] - ever[a] || a - b);
    const own = order.length <= SLOTS ? order : order.slice(0, OTHERS);
    const slotOf = new Uint8Array(most + 1).fill(OTHERS);
    this.names = own.map(nameOf);
    own.forEach((key, slot) => { slotOf[key] = slot; });
    if (own.length < order.length) this.names[OTHERS] = `${countText(order.length - own.length)} others`;
    this.slots = new Uint8Array(device.count);
    for (let k = 0; k < device.count; k++) this.slots[k] = slotOf[keys[k]];
  }
}

/** For each allocation one node that stands for its innermost function. */
function functionKeys(common, device) {
  const first = new Map(), of = new Uint32Array(common.nodes);
  for (let node = 1; node < common.nodes; node++) {
    const call = common.call[node], key = common.function[call] * 4294967296 + common.file[call];
    if (!first.has(key)) first.set(key, node);
    of[node] = first.get(key);
  }
  const keys = new Uint32Array(device.count);
  for (let k = 0; k < device.count; k++) keys[k] = of[device.node[k]];
  return keys;
}

/** What a search finds: nodes whose stack has the text, tags, and an address. */
class Search {
  constructor(common, device, text) {
    this.text = text.trim().toLowerCase();
    if (!this.text) return;
    const has = (value) => value.toLowerCase().includes(this.text);
    const texts = common.texts.map(has), tags = device.tags.map(has);
    const calls = new Uint8Array(common.file.length);
    for (let c = 0; c < calls.length; c++) {
      calls[c] = texts[common.function[c]] || texts[common.file[c]] || has(`${common.texts[common.file[c]]}:${common.line[c]}`) ? 1 : 0;
    }
    this.own = new Uint8Array(common.nodes); // the call itself
    this.nodes = new Uint8Array(common.nodes); // it, or one that led to it
    for (let node = 1; node < common.nodes; node++) {
      this.own[node] = calls[common.call[node]];
      this.nodes[node] = this.own[node] | this.nodes[common.parent[node]];
    }
    this.tags = tags;
    const address = /^0x[0-9a-f]{1,16}$/.test(this.text) ? BigInt(this.text) : null;
    const low = address === null ? 0 : Number(address & 0xffffffffn), high = address === null ? 0 : Number(address >> 32n);
    this.hits = new Uint8Array(device.count);
    for (let k = 0; k < device.count; k++) {
      const found = address === null ? this.nodes[device.node[k]] || tags[device.tag[k]] : isInside(device, k, low, high, address);
      this.hits[k] = found ? 1 : 0;
    }
    const sizes = new Float64Array(device.count);
    for (let k = 0; k < device.count; k++) if (this.hits[k]) sizes[k] = device.size[k];
    this.bytes = curve(device.entries, device.born, device.freed, sizes);
  }

  get isOn() {
    return this.text !== "";
  }
}

/** Whether an address lies in an allocation. */
function isInside(device, k, low, high, address) {
  if (device.address_low[k] === low && device.address_high[k] === high) return true;
  if (device.address_high[k] > high) return false;
  const start = (BigInt(device.address_high[k]) << 32n) | BigInt(device.address_low[k]);
  return start <= address && address < start + BigInt(device.size[k]);
}
