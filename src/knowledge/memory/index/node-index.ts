import type { NodeRecord } from "../model.ts";
import { isPrivateRealm } from "../realms.ts";
import { Lists } from "./block-pool.ts";
import { grown, Names } from "./columns.ts";
import { EntityNames } from "./entity-names.ts";
import { MOST_NUMBERS, Postings } from "./postings.ts";
import { TermCounter } from "./term-counter.ts";
import { FORMER, INVALIDATED, LIVE, Versions, type IndexedLife, type State } from "./versions.ts";

export type IndexedNode = IndexedLife &
  Pick<NodeRecord, "kind" | "memoryType" | "importance" | "name" | "content" | "tags">;

/**
 * The nodes of a database by their words. Each private realm has postings of its own, so a search touches no word of
 * realms that its caller may not see, and neither do its statistics. In each, what holds now is apart from former and
 * invalidated versions: the common search is not slowed by the past.
 */
export class NodeIndex {
  readonly versions: Versions;
  readonly types = new Names();
  readonly tagNames = new Names();
  readonly names = new EntityNames();
  readonly #realms: Names;
  readonly #counter = new TermCounter();
  /** By number of the realm: its part. All realms that are not private share the first. */
  #partOfRealm = new Uint32Array(16);
  readonly #parts: Part[] = [newPart()];
  /** By slot: the terms of a version that is live or past, packed with how often it has them, and its tags. */
  readonly termLists = new Lists();
  readonly tags = new Lists();
  lengths = new Uint16Array(64);
  type = new Uint32Array(64);
  isEntity = new Uint8Array(64);
  importance = new Float32Array(64);
  nameKey = new Uint32Array(64);

  constructor(realms: Names) {
    this.#realms = realms;
    this.versions = new Versions(realms, (slot, before, after) => this.#onChange(slot, before, after));
  }

  /** Makes room for so many nodes. */
  reserve(count: number): void {
    this.versions.reserve(count);
    this.#reserveSlots(count);
  }

  /** Returns the slot of a version that is new; -1 for one that is known. */
  apply(record: IndexedNode, isCurrent: boolean): number {
    const slot = this.versions.place(record);
    if (slot < 0) {
      if (!isCurrent) this.versions.retire(record);
      return -1;
    }
    if (slot >= MOST_NUMBERS) throw new Error(`a database has more than ${MOST_NUMBERS} versions of nodes`);
    if (slot >= this.nameKey.length) this.#reserveSlots(slot + 1);
    this.#partFor(slot);
    this.type[slot] = this.types.numberOf(record.memoryType ?? "");
    this.isEntity[slot] = record.kind === "entity" ? 1 : 0;
    this.importance[slot] = record.importance;
    for (const tag of record.tags) this.tags.push(slot, this.tagNames.numberOf(tag));
    this.lengths[slot] = this.#analyse(slot, record);
    if (record.kind === "entity" && record.name !== undefined) {
      this.nameKey[slot] = this.names.add(record.name, this.versions.owner[slot] ?? 0);
    }
    this.versions.enter(slot, isCurrent, record.invalidatedAtUs !== undefined);
    return slot;
  }

  /** The number of a term, -1 for one that nothing has. */
  termOf(term: string): number {
    return this.#counter.termOf(term);
  }

  /** How many terms there are. */
  get terms(): number {
    return this.#counter.terms;
  }

  /** What to search for a caller: of the realms that are `visible`, by number, and of those that are shared. */
  parts(visible: Uint8Array, { withShared, withPast }: { withShared: boolean; withPast: boolean }): Postings[] {
    const numbers = new Set<number>(withShared ? [SHARED] : []);
    for (let realm = 0; realm < this.#realms.texts.length; realm++) {
      if (visible[realm] === 1) numbers.add(this.#partOfRealm[realm] ?? 0);
    }
    return [...numbers].flatMap((number) => {
      const part = this.#parts[number];
      if (part === undefined) return [];
      return withPast ? [part.live, part.past] : [part.live];
    });
  }

  get sizeBytes(): number {
    const columns = [this.lengths, this.type, this.isEntity, this.importance, this.nameKey];
    return (
      this.versions.sizeBytes +
      this.#counter.sizeBytes +
      this.names.sizeBytes +
      this.termLists.sizeBytes +
      this.tags.sizeBytes +
      this.#parts.reduce((sum, { live, past }) => sum + live.sizeBytes + past.sizeBytes, 0) +
      columns.reduce((sum, { byteLength }) => sum + byteLength, 0)
    );
  }

  #onChange(slot: number, before: State, after: State): void {
    const part = this.#parts[this.#partOfRealm[this.versions.realm[slot] ?? 0] ?? 0];
    const from = postingsFor(part, before);
    const to = postingsFor(part, after);
    if (from === to) return;
    const length = this.lengths[slot] ?? 0;
    from?.remove(slot, this.termLists.view(slot), length);
    to?.add(slot, this.termLists.view(slot), length);
    if (to !== undefined) return;
    this.termLists.clear(slot);
    this.tags.clear(slot);
    this.names.remove(this.nameKey[slot] ?? 0, this.versions.owner[slot] ?? 0);
  }

  #partFor(slot: number): void {
    const realm = this.versions.realm[slot] ?? 0;
    this.#partOfRealm = grown(this.#partOfRealm, realm + 1);
    if (this.#partOfRealm[realm] !== 0 || !isPrivateRealm(this.#realms.texts[realm] ?? "")) return;
    this.#partOfRealm[realm] = this.#parts.push(newPart()) - 1;
  }

  /** Counts the terms of a record. Returns how many there are: the length of the document. */
  #analyse(slot: number, { content, name, tags }: IndexedNode): number {
    this.#counter.add(content, 1);
    if (name !== undefined) this.#counter.add(name, NAME_WEIGHT);
    for (const tag of tags) this.#counter.add(tag, 1);
    const { terms, length } = this.#counter.take();
    this.termLists.set(slot, terms, terms.length);
    return Math.min(length, MOST_LENGTH);
  }

  #reserveSlots(count: number): void {
    this.lengths = grown(this.lengths, count);
    this.type = grown(this.type, count);
    this.isEntity = grown(this.isEntity, count);
    this.importance = grown(this.importance, count);
    this.nameKey = grown(this.nameKey, count);
  }
}

/** A word of the title counts as so many of the text. */
export const NAME_WEIGHT = 2;
const MOST_LENGTH = 0xffff;

type Part = { live: Postings; past: Postings };

/** The part of all realms that are not private. */
const SHARED = 0;

function newPart(): Part {
  return { live: new Postings(), past: new Postings() };
}

function postingsFor(part: Part | undefined, state: State): Postings | undefined {
  if (state === LIVE) return part?.live;
  return state === INVALIDATED || state === FORMER ? part?.past : undefined;
}
