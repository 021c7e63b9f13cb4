import type { LifeCycle, Tombstone } from "../model.ts";
import { grown, type Names } from "./columns.ts";
import { IdTable } from "./id-table.ts";

/** What an index keeps of every version. */
export type IndexedLife = Pick<
  LifeCycle,
  | "id"
  | "version"
  | "realm"
  | "updatedAtUs"
  | "originUpdatedAtUs"
  | "contentHash"
  | "validFromUs"
  | "validToUs"
  | "invalidatedAtUs"
>;

/**
 * All versions of the nodes, or the edges, of a database: each has a number (its slot), by which columns of typed arrays
 * say what is needed to choose it. Versions of one id are a chain.
 */
export class Versions {
  readonly ids = new IdTable();
  readonly #realms: Names;
  readonly #onChange: OnChange;
  /** By number of the id: the slots of its current and of its newest version, + 1. */
  #current = new Uint32Array(64);
  #newest = new Uint32Array(64);
  /** By slot. */
  #previous = new Uint32Array(64);
  #version = new Uint32Array(64);
  #recordedUs = new Float64Array(64);
  #originUs = new Float64Array(64);
  #hash = new Float64Array(64);
  /** The number of the id. */
  owner = new Uint32Array(64);
  state = new Uint8Array(64);
  realm = new Uint32Array(64);
  validFromUs = new Float64Array(64);
  validToUs = new Float64Array(64);
  slots = 0;
  erased = 0;
  /** By realm: from this time on every version that is live has begun to hold. */
  pendingUntilUs = new Float64Array(16);
  /** Until this time no version that is live has ended. */
  noneEndsUntilUs = Number.POSITIVE_INFINITY;

  constructor(realms: Names, onChange: OnChange) {
    this.#realms = realms;
    this.#onChange = onChange;
  }

  /** Makes room for so many ids, of one version each. */
  reserve(count: number): void {
    this.ids.reserve(count);
    this.#reserveIds(count);
    this.#reserveSlots(count);
  }

  /**
   * Applies a version; of one that is known already, only that it has become a former one. Returns the slot of a new
   * version, whose state is to be set by `enter` when all about it is in place; -1 when there is nothing new.
   */
  place(record: IndexedLife): number {
    const owner = this.ids.numberOf(record.id);
    if (this.#find(owner, record.version) >= 0) return -1;
    const slot = this.slots++;
    this.#grow(owner);
    this.#previous[slot] = this.#newest[owner] ?? 0;
    this.#newest[owner] = slot + 1;
    this.#version[slot] = record.version;
    this.#recordedUs[slot] = record.updatedAtUs;
    this.#originUs[slot] = record.originUpdatedAtUs;
    this.#hash[slot] = hashNumber(record.contentHash);
    this.owner[slot] = owner;
    this.realm[slot] = this.#realms.numberOf(record.realm);
    this.validFromUs[slot] = record.validFromUs;
    this.validToUs[slot] = record.validToUs ?? Number.POSITIVE_INFINITY;
    return slot;
  }

  enter(slot: number, isCurrent: boolean, isInvalidated: boolean): void {
    const owner = this.owner[slot] ?? 0;
    let state: State = FORMER;
    if (isCurrent) {
      const before = (this.#current[owner] ?? 0) - 1;
      if (before >= 0 && (this.#version[before] ?? 0) > (this.#version[slot] ?? 0)) state = FORMER;
      else {
        if (before >= 0) this.#set(before, FORMER);
        this.#current[owner] = slot + 1;
        state = isInvalidated ? INVALIDATED : LIVE;
      }
    }
    if (state === LIVE) {
      this.#notePending(slot);
      this.noneEndsUntilUs = Math.min(this.noneEndsUntilUs, this.validToUs[slot] ?? 0);
    }
    this.#set(slot, state);
  }

  /** A version that was current and is none now. */
  retire(record: Pick<IndexedLife, "id" | "version">): void {
    const owner = this.ids.find(record.id);
    const slot = owner < 0 ? -1 : this.#find(owner, record.version);
    if (slot < 0 || this.state[slot] === FORMER) return;
    this.#current[owner] = 0;
    this.#set(slot, FORMER);
  }

  /** Forgets all versions up to that of the tombstone. */
  erase(tombstone: Pick<Tombstone, "id" | "version">): void {
    const owner = this.ids.find(tombstone.id);
    if (owner < 0) return;
    const kept: number[] = [];
    for (const slot of this.chain(owner)) {
      if ((this.#version[slot] ?? 0) > tombstone.version) kept.push(slot);
      else {
        if (this.#current[owner] === slot + 1) this.#current[owner] = 0;
        this.#set(slot, ERASED);
        this.erased++;
      }
    }
    let next = 0;
    for (const slot of kept.toReversed()) {
      this.#previous[slot] = next;
      next = slot + 1;
    }
    this.#newest[owner] = next;
  }

  /** The current version of an id, by its number; -1 when there is none. */
  currentOf(owner: number): number {
    return (this.#current[owner] ?? 0) - 1;
  }

  /** The current version of an id unless it is invalidated, by its number; -1 when there is none. */
  liveOf(owner: number): number {
    const slot = (this.#current[owner] ?? 0) - 1;
    return slot >= 0 && this.state[slot] === LIVE ? slot : -1;
  }

  /**
   * The version that decides what held at a time, by what was recorded until `knownUs`: see `validity.ts`. It held then
   * unless its validity was over. -1 when there is none.
   */
  decidesAt(owner: number, atUs: number, knownUs: number): number {
    let decides = -1;
    for (let slot = (this.#newest[owner] ?? 0) - 1; slot >= 0; slot = (this.#previous[slot] ?? 0) - 1) {
      if ((this.#recordedUs[slot] ?? 0) > knownUs || (this.validFromUs[slot] ?? 0) > atUs) continue;
      if (decides < 0 || this.#prevails(slot, decides)) decides = slot;
    }
    return decides;
  }

  /** When the version was made. */
  originUs(slot: number): number {
    return this.#originUs[slot] ?? 0;
  }

  /** The newest version first; an order of all that does not depend on how they came. */
  compare(a: number, b: number): number {
    const newer = (this.#originUs[b] ?? 0) - (this.#originUs[a] ?? 0);
    if (newer !== 0) return newer;
    const greater = (this.#hash[b] ?? 0) - (this.#hash[a] ?? 0);
    return greater === 0 ? this.ids.compare(this.owner[a] ?? 0, this.owner[b] ?? 0) : greater;
  }

  versionOf(slot: number): number {
    return this.#version[slot] ?? 0;
  }

  *chain(owner: number): Generator<number> {
    for (let slot = (this.#newest[owner] ?? 0) - 1; slot >= 0; slot = (this.#previous[slot] ?? 0) - 1) yield slot;
  }

  get sizeBytes(): number {
    const columns = [this.#current, this.#newest, this.#previous, this.#version, this.#recordedUs, this.#originUs];
    const others = [this.#hash, this.owner, this.state, this.realm, this.validFromUs, this.validToUs];
    return this.ids.sizeBytes + [...columns, ...others].reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  #set(slot: number, state: State): void {
    const before = (this.state[slot] ?? NEW) as State;
    this.state[slot] = state;
    this.#onChange(slot, before, state);
  }

  #notePending(slot: number): void {
    const realm = this.realm[slot] ?? 0;
    this.pendingUntilUs = grown(this.pendingUntilUs, realm + 1);
    this.pendingUntilUs[realm] = Math.max(this.pendingUntilUs[realm] ?? 0, this.validFromUs[slot] ?? 0);
  }

  #prevails(a: number, b: number): boolean {
    const later = (this.#originUs[a] ?? 0) - (this.#originUs[b] ?? 0);
    return later === 0 ? (this.#hash[a] ?? 0) > (this.#hash[b] ?? 0) : later > 0;
  }

  #find(owner: number, version: number): number {
    for (let slot = (this.#newest[owner] ?? 0) - 1; slot >= 0; slot = (this.#previous[slot] ?? 0) - 1) {
      if (this.#version[slot] === version) return slot;
    }
    return -1;
  }

  #grow(owner: number): void {
    if (owner >= this.#current.length) this.#reserveIds(owner + 1);
    if (this.slots > this.validToUs.length) this.#reserveSlots(this.slots);
  }

  #reserveIds(count: number): void {
    this.#current = grown(this.#current, count);
    this.#newest = grown(this.#newest, count);
  }

  #reserveSlots(count: number): void {
    this.#previous = grown(this.#previous, count);
    this.#version = grown(this.#version, count);
    this.#recordedUs = grown(this.#recordedUs, count);
    this.#originUs = grown(this.#originUs, count);
    this.#hash = grown(this.#hash, count);
    this.owner = grown(this.owner, count);
    this.state = grown(this.state, count);
    this.realm = grown(this.realm, count);
    this.validFromUs = grown(this.validFromUs, count);
    this.validToUs = grown(this.validToUs, count);
  }
}

/** A version that is not in yet. */
export const NEW = 0;
/** Current, and not invalidated. */
export const LIVE = 1;
/** Current, and invalidated. */
export const INVALIDATED = 2;
export const FORMER = 3;
export const ERASED = 4;
export type State = typeof NEW | typeof LIVE | typeof INVALIDATED | typeof FORMER | typeof ERASED;

/** Called with the state that a version had and the one that it has now. */
export type OnChange = (slot: number, before: State, after: State) => void;

/** What a number holds exactly: ties beyond it would need two texts with 52 equal bits of their hash. */
const HASH_DIGITS = 13;

/** The first digits of a hash as a number; 0 for what is none. */
function hashNumber(hash: string): number {
  let value = 0;
  for (let i = 0; i < HASH_DIGITS; i++) {
    const unit = hash.charCodeAt(i);
    if (unit >= DIGIT_0 && unit <= DIGIT_0 + 9) value = value * 16 + unit - DIGIT_0;
    else if (unit >= LETTER_A && unit <= LETTER_A + 5) value = value * 16 + 10 + unit - LETTER_A;
    else return value;
  }
  return value;
}

const DIGIT_0 = 0x30;
const LETTER_A = 0x61;
