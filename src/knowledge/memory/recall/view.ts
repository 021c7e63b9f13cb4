import type { MemoryIndex } from "../index/memory-index.ts";
import type { Postings } from "../index/postings.ts";
import { LIVE, type Versions } from "../index/versions.ts";
import { isPrivateRealm, maySee } from "../realms.ts";
import type { Asked } from "./question.ts";

/**
 * The part of an index that one question is about: of the realms that its caller may see and asks for, what held at the
 * time. Everything that recall reads of nodes and edges it reads through here, so what is not in the view can neither be
 * a result nor lead to one.
 */
export class View {
  readonly index: MemoryIndex;
  /** By number of a realm: 1 if it is asked about and may be seen. */
  readonly visible: Uint8Array;
  /** Whether realms that are not private are asked about, be there any or not. */
  readonly #withShared: boolean;
  /** Undefined: now, as everything is known now. */
  readonly #past: { atUs: number; knownUs: number } | undefined;
  readonly #nowUs: number;
  readonly #withInvalidated: boolean;
  readonly #type: number | undefined;
  readonly #tags: readonly number[];
  readonly #importanceMin: number;
  /** The time that the answer is about. */
  readonly atUs: number;
  /** Whether every live node is in view, of all realms or of those that are nobody's own; and every live edge. */
  readonly #hasAllNodes: boolean;
  readonly #hasAllShared: boolean;
  readonly #hasAllEdges: boolean;

  constructor(index: MemoryIndex, { question, rights, nowUs }: Asked) {
    const { realms, nodes, edges } = index;
    const { asOfUs, knownAtUs } = question;
    this.index = index;
    const asked = new Set(question.realms);
    this.visible = Uint8Array.from(realms.texts, (realm) =>
      (asked.size === 0 || asked.has(realm)) && maySee(rights, realm) ? 1 : 0,
    );
    this.#withShared = asked.size === 0 || question.realms.some((realm) => !isPrivateRealm(realm));
    this.atUs = asOfUs ?? knownAtUs ?? nowUs;
    this.#nowUs = nowUs;
    const isAhead = [nodes, edges].some(({ versions }) => this.#isPending(versions, nowUs));
    // Of what does not hold any more, what decides now is shown, and not what begins later.
    const isPast = asOfUs !== undefined || knownAtUs !== undefined || question.includeInvalidated || isAhead;
    this.#past = isPast ? { atUs: this.atUs, knownUs: knownAtUs ?? Number.POSITIVE_INFINITY } : undefined;
    this.#withInvalidated = question.includeInvalidated;
    this.#type = question.memoryType === undefined ? undefined : nodes.types.find(question.memoryType);
    this.#tags = question.tags.map((tag) => nodes.tagNames.find(tag));
    this.#importanceMin = question.importanceMin ?? 0;
    const isPlain = this.#past === undefined;
    const seesAll = !this.visible.includes(0);
    const seesShared = realms.texts.every((realm, i) => this.visible[i] === 1 || isPrivateRealm(realm));
    this.#hasAllNodes = isPlain && seesAll && nowUs < nodes.versions.noneEndsUntilUs;
    this.#hasAllShared = isPlain && seesShared && nowUs < nodes.versions.noneEndsUntilUs;
    this.#hasAllEdges = isPlain && seesAll && nowUs < edges.versions.noneEndsUntilUs;
  }

  /** What to search. */
  get parts(): Postings[] {
    return this.index.nodes.parts(this.visible, {
      withShared: this.#withShared,
      withPast: this.isOfThePast,
    });
  }

  /** Whether a node in `parts` is in view, and is an entity or a memory that was asked for; undefined when all are. */
  get accepts(): ((slot: number) => boolean) | undefined {
    const isFiltered = this.#type !== undefined || this.#tags.length > 0 || this.#importanceMin > 0;
    if (this.#hasAllShared && !isFiltered) return undefined;
    return (slot) => this.hasNode(slot) && (this.isEntity(slot) || this.isWanted(slot));
  }

  /** Whether former versions may be results. */
  get isOfThePast(): boolean {
    return this.#past !== undefined;
  }

  /** The version of a node that is in view, by the number of its id; -1 when none is. */
  nodeOf(owner: number): number {
    if (this.#hasAllNodes) return this.index.nodes.versions.liveOf(owner);
    return this.#inView(this.index.nodes.versions, owner);
  }

  /** An order of nodes in view, by the numbers of their ids, that does not depend on how they came. */
  compareNodes(a: number, b: number): number {
    return this.index.nodes.versions.compare(this.nodeOf(a), this.nodeOf(b));
  }

  hasNode(slot: number): boolean {
    const { versions } = this.index.nodes;
    return this.visible[versions.realm[slot] ?? 0] === 1 && this.nodeOf(versions.owner[slot] ?? 0) === slot;
  }

  /** Of an edge in the list of those that are live, or those of the past. */
  hasEdge(slot: number): boolean {
    if (this.#hasAllEdges) return true;
    const { versions } = this.index.edges;
    return this.visible[versions.realm[slot] ?? 0] === 1 && this.#inView(versions, versions.owner[slot] ?? 0) === slot;
  }

  isEntity(slot: number): boolean {
    return this.index.nodes.isEntity[slot] === 1;
  }

  /** Whether a node in view is a memory that was asked for. Others may lead to such. */
  isWanted(slot: number): boolean {
    const { nodes } = this.index;
    if (this.isEntity(slot)) return false;
    if (this.#type !== undefined && nodes.type[slot] !== this.#type) return false;
    // Importance is kept as a 32-bit number.
    if ((nodes.importance[slot] ?? 0) < Math.fround(this.#importanceMin)) return false;
    if (this.#tags.length === 0) return true;
    const tags = nodes.tags.view(slot);
    return this.#tags.every((tag) => tag >= 0 && tags.includes(tag));
  }

  /** Whether something in sight begins to hold later: until then a former version of it may hold. */
  #isPending({ pendingUntilUs }: Versions, nowUs: number): boolean {
    return this.visible.some((isVisible, realm) => isVisible === 1 && nowUs < (pendingUntilUs[realm] ?? 0));
  }

  #inView(versions: Versions, owner: number): number {
    const slot = this.#past === undefined ? this.#atPresent(versions, owner) : this.#inPast(versions, owner);
    return slot >= 0 && this.visible[versions.realm[slot] ?? 0] === 1 ? slot : -1;
  }

  #atPresent(versions: Versions, owner: number): number {
    const slot = versions.currentOf(owner);
    if (slot < 0) return -1;
    const holds = versions.state[slot] === LIVE && (versions.validToUs[slot] ?? 0) > this.#nowUs;
    return holds ? slot : -1;
  }

  #inPast(versions: Versions, owner: number): number {
    const { atUs, knownUs } = this.#past ?? { atUs: this.atUs, knownUs: Number.POSITIVE_INFINITY };
    const slot = versions.decidesAt(owner, atUs, knownUs);
    if (slot < 0 || this.#withInvalidated) return slot;
    return (versions.validToUs[slot] ?? 0) > atUs ? slot : -1;
  }
}
