import type { IdSource } from "../../core/ids.ts";
import type { Random } from "../../core/random.ts";
import { Fence } from "../agent/engines/fence.ts";
import type { Usage } from "../agent/run/events.ts";
import { RunStopped } from "../agent/run/run-end.ts";
import type { NodeRecord } from "../memory/model.ts";
import { realmRights } from "../memory/realms.ts";
import { FIREHOSE_TABLE } from "../memory/service.ts";
import type { MemorySettings } from "../memory/settings.ts";
import type { MemoryStore } from "../memory/store.ts";
import { dreamerOf, type DreamMode } from "./dream-job.ts";
import { toRunStopped, type EngineFailure } from "./failure.ts";
import { DREAMING_LIMITS } from "./limits.ts";
import { addUsage, type DreamAnswer, type Question } from "./loop.ts";
import { maskRow } from "./mask-row.ts";
import { edgesBetween, neighboursOf } from "./neighbours.ts";
import type { EventSource, ObservedEvent } from "./ports.ts";
import { dreamPrompt } from "./prompt.ts";
import { readProposals } from "./proposals.ts";
import { resolveProposals, type Refusal, type Resolved } from "./resolve.ts";
import type { RunProgress, Watermark } from "./runs.ts";
import { fittingEdges, fittingNodes, keysOf, shownOf, type StoredKeys } from "./shown.ts";

export type SessionDeps = {
  store: MemoryStore;
  events: EventSource;
  random: Random;
  newId: IdSource;
};

/** Which run of which database, and what it was asked for. */
export type Place = {
  databaseId: number;
  database: string;
  runId: string;
  mode: DreamMode;
  focus: string | undefined;
};

export type SessionOptions = {
  place: Place;
  /** Aborted when the run must end. */
  stop: AbortSignal;
  /** Until the run asks no further. */
  timeLeftMs: () => number;
  onProgress: (progress: RunProgress) => void;
};

export type DreamSettings = MemorySettings["dreaming"];

/**
 * How far a dream is: what it has read and been proposed. Nothing of it is written. It is plain JSON, for a dream on a worker
 * is stored between its requests.
 */
export type DreamState = {
  /** As they were when the run began. */
  settings: DreamSettings;
  maxOutputTokens: number;
  watermark: Watermark;
  /** The next watermark. */
  position: DreamPosition;
  /** How much the next question shows. */
  extent: Extent;
  /** Whether the next question shows old memories. */
  showsOld: boolean;
  /** The one that waits for its answer. */
  asked?: AskedQuestion | undefined;
  isOver: boolean;
  /** Whether there are more events than the run may read. */
  isBehind: boolean;
  /** In the order in which they are to be carried out. */
  resolved: Resolved[];
  keptBytes: number;
  refused: Refusal[];
  /** With those that were skipped. */
  eventsScanned: number;
  /** Events on each of which the engine failed. */
  skippedEvents: number;
  /** Why the run asked no further, or skipped events. */
  failure?: EngineFailure | undefined;
  questions: number;
  usage: Usage;
  /** Ids of entities that the model was shown. */
  shownEntities: string[];
};

/** The watermark of dreams: the events that were read, and the memory that deep dreams have come to. */
export type DreamPosition = { events?: unknown; deep_after: string };

type AskedQuestion = { position: string; shown: StoredKeys } & PageEnd;
/** Where a page of events ends. */
type PageEnd = { count: number; after: unknown; isEnd: boolean };

/** Fewer and fewer events while the engine fails on them, then one event alone. */
type Extent = { events: number; withMemories: boolean };
const FULL: Extent = { events: DREAMING_LIMITS.batchEvents, withMemories: true };

/** The state of a dream that has read nothing yet. */
export function newState(
  begin: Pick<DreamState, "settings" | "maxOutputTokens" | "watermark"> & { mode: DreamMode },
): DreamState {
  const { mode, ...given } = begin;
  return {
    ...given,
    position: { ...positionOf(begin.watermark) },
    extent: FULL,
    showsOld: mode === "deep",
    isOver: false,
    isBehind: false,
    resolved: [],
    keptBytes: 0,
    refused: [],
    eventsScanned: 0,
    skippedEvents: 0,
    questions: 0,
    usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0 },
    shownEntities: [],
  };
}

/**
 * Reads events in batches, has questions asked about each, and checks the answers, until all are read or the run has taken
 * what it may. The state says how far it is, so that another process may go on with it.
 */
export class DreamSession {
  readonly #deps: SessionDeps;
  readonly #options: SessionOptions;
  readonly #state: DreamState;

  constructor(deps: SessionDeps, options: SessionOptions, state: DreamState) {
    this.#deps = deps;
    this.#options = options;
    this.#state = state;
  }

  /**
   * The next question; undefined when there is none. Rejects with the reason of `stop`, as reads of events and records do,
   * and with `RunStopped` where the engine failed on everything.
   */
  async next(): Promise<Question | undefined> {
    const state = this.#state;
    while (!state.isOver) {
      const rows = state.settings.max_events - state.eventsScanned;
      if (rows <= 0 || !this.#mayAsk()) {
        this.#end(true);
        break;
      }
      this.#tell("reading");
      const old = state.showsOld ? await this.#oldMemories() : [];
      const page = await this.#page(state.position.events, Math.min(rows, state.extent.events), this.#eventChars());
      const shown = state.extent.withMemories ? old : [];
      if (page.events.length > 0 || shown.length > 0) return await this.#question(page, shown);
      this.#advance({ ...page, count: 0 });
    }
    return undefined;
  }

  /**
   * Takes the answer to the question that was asked last. Throws the engine's failure while there is nothing from before that
   * would be lost with it, unless the failure is about what was shown.
   */
  apply(answer: DreamAnswer): void {
    const state = this.#state;
    const { asked } = state;
    if (asked === undefined) throw new Error("no question waits for its answer");
    state.asked = undefined;
    addUsage(state.usage, answer.usage);
    if ("proposals" in answer) {
      this.#take(asked, answer);
      this.#advance(asked);
    } else if (this.#isStoppedBy(answer)) this.#end(true);
    else this.#narrow(asked);
  }

  /** A search for the events that the engine fails on goes on whatever it takes, for else the next dream had to repeat it. */
  #mayAsk(): boolean {
    const { extent, skippedEvents } = this.#state;
    if (this.#options.timeLeftMs() <= 0 || skippedEvents >= DREAMING_LIMITS.skippedEvents) return false;
    if (this.#proposalsLeft() <= 0) return false;
    return extent.events < FULL.events || this.#inputChars() / 2 >= DREAMING_LIMITS.leastBatchChars;
  }

  async #oldMemories(): Promise<NodeRecord[]> {
    const { settings, watermark, position } = this.#state;
    const after = positionOf(watermark).deep_after;
    const asked = { realms: settings.realms, after, limit: DREAMING_LIMITS.oldMemories };
    const { nodes, last } = await this.#deps.store.nodesAfter(this.#options.place.databaseId, asked);
    // Half of the room for memories is for those that are close to the events.
    const shown = fittingNodes(nodes, Math.floor((this.#memoryChars() * 3) / 8));
    // After the last one it begins again; those that do not fit come with the next deep dream.
    position.deep_after = shown.length < nodes.length ? (shown.at(-1)?.id ?? nodes[0]?.id ?? "") : (last ?? "");
    return shown;
  }

  async #page(position: unknown, rows: number, bytes: number) {
    const { stop, place } = this.#options;
    const { database } = place;
    const caller = dreamerOf(database);
    const request = { caller, database, table: FIREHOSE_TABLE, position, rows, bytes, signal: stop };
    const page = await this.#deps.events.read(request);
    const events = page.rows.map(({ id, text }): ObservedEvent => {
      const row = JSON.parse(text) as { at?: unknown };
      const masked = maskRow(row);
      return { id, at: String(row.at), text: masked === row ? text : JSON.stringify(masked) };
    });
    return { events, after: page.position, isEnd: page.isEnd };
  }

  async #question(
    { events, after, isEnd }: Omit<PageEnd, "count"> & { events: readonly ObservedEvent[] },
    old: readonly NodeRecord[],
  ): Promise<Question> {
    const { store, newId, random } = this.#deps;
    const { place, timeLeftMs } = this.#options;
    const { databaseId, database, mode, focus } = place;
    const state = this.#state;
    const { realms } = state.settings;
    const near = state.extent.withMemories ? await neighboursOf(store, databaseId, { realms, events, focus }) : [];
    const chars = this.#memoryChars();
    const distinct = [...new Map([...old, ...near].map((node) => [node.id, node])).values()];
    const nodes = fittingNodes(distinct, Math.floor((chars * 3) / 4));
    const rights = realmRights(dreamerOf(database));
    const edges = fittingEdges(await edgesBetween(store, databaseId, { nodes, realms, rights }), Math.floor(chars / 4));
    const shown = shownOf(events, nodes, edges);
    const position = newId();
    state.asked = { position, shown: keysOf(shown), count: events.length, after, isEnd };
    this.#tell("asking");
    const prompt = dreamPrompt({ fence: new Fence(random), shown, mode, focus, realms });
    return { position, ...prompt, maxOutputTokens: this.#answerTokens(), timeLeftMs: timeLeftMs() };
  }

  #take({ shown: keys }: AskedQuestion, answer: Extract<DreamAnswer, { proposals: unknown }>): void {
    const state = this.#state;
    const { mode, runId } = this.#options.place;
    const { proposals, malformed } = readProposals(answer.proposals);
    const shown = shownOf(keys.events, keys.nodes, keys.edges);
    const context = { shown, realms: state.settings.realms, mode, runId, newId: this.#deps.newId };
    const { resolved, refused } = resolveProposals(proposals, context);
    const room = this.#proposalsLeft();
    for (const [i, each] of resolved.entries()) {
      const bytes = Buffer.byteLength(JSON.stringify(each));
      if (i >= room || state.keptBytes + bytes > DREAMING_LIMITS.keptBytes) {
        refused.push("limit");
        continue;
      }
      state.keptBytes += bytes;
      state.resolved.push(each);
    }
    state.refused.push(...times(malformed + answer.malformed, "malformed"), ...refused);
    state.questions++;
    const entities = keys.nodes.flatMap(({ id, kind }) => (kind === "entity" ? [id] : []));
    state.shownEntities = [...new Set([...state.shownEntities, ...entities])];
    if (state.skippedEvents === 0) state.failure = undefined;
  }

  /** Whether the run asks no further, and keeps what it has from before; else fewer events are shown. */
  #isStoppedBy(answer: Exclude<DreamAnswer, { proposals: unknown }>): boolean {
    const state = this.#state;
    const hasSome = state.questions + state.skippedEvents > 0;
    if ("isLate" in answer) {
      if (hasSome) return true;
      const message = `the engine did not answer within the ${state.settings.max_minutes} minutes of a dream`;
      throw new RunStopped("engine_timeout", message, { retryable: true });
    }
    const { failure } = answer;
    state.failure = failure;
    if (state.questions === 0 && failure.isOfContent) return false;
    if (hasSome) return true;
    throw toRunStopped(failure);
  }

  /** The engine failed on what it was shown. */
  #narrow(asked: AskedQuestion): void {
    const state = this.#state;
    const isAlone = asked.count <= 1 && !state.extent.withMemories;
    if (!isAlone) {
      const events = Math.max(1, Math.floor(asked.count / 2));
      state.extent = { events, withMemories: events > 1 };
      return;
    }
    state.skippedEvents += asked.count;
    this.#advance(asked);
  }

  #advance({ count, after, isEnd }: PageEnd): void {
    const state = this.#state;
    state.position.events = after;
    state.eventsScanned += count;
    state.extent = FULL;
    state.showsOld = false;
    if (isEnd) this.#end(false);
  }

  #end(isBehind: boolean): void {
    const state = this.#state;
    state.isOver = true;
    state.isBehind = isBehind;
    const { failure, questions, skippedEvents } = state;
    // The time was up before the events that the engine fails on were found.
    if (failure !== undefined && isBehind && questions + skippedEvents === 0) throw toRunStopped(failure);
  }

  #proposalsLeft(): number {
    const { settings, resolved } = this.#state;
    return settings.max_writes * DREAMING_LIMITS.proposalsPerWrite - resolved.length;
  }

  /** Tokens of a full answer: an answer that is cut off for want of tokens would fail the same way each time. */
  #answerTokens(): number {
    const { settings, maxOutputTokens } = this.#state;
    return Math.min(maxOutputTokens, Math.floor(settings.max_tokens / 2));
  }

  /** Characters that the next question may have, so that a full answer to it fits in the tokens that are left. */
  #inputChars(): number {
    const { settings, usage } = this.#state;
    const left = settings.max_tokens - usage.total_tokens - this.#answerTokens();
    return Math.max(0, left * DREAMING_LIMITS.charsPerToken);
  }

  /** Half of the question. */
  #eventChars(): number {
    const { leastBatchChars, batchChars } = DREAMING_LIMITS;
    return Math.min(batchChars, Math.max(leastBatchChars, Math.floor(this.#inputChars() / 2)));
  }

  /** A quarter of the question; the rest is for the instructions. */
  #memoryChars(): number {
    return Math.min(DREAMING_LIMITS.memoriesChars, Math.floor(this.#inputChars() / 4));
  }

  #tell(phase: string): void {
    const { resolved, refused, eventsScanned: events } = this.#state;
    this.#options.onProgress({ phase, events, proposals: resolved.length + refused.length, written: 0 });
  }
}

function positionOf({ position }: Watermark): DreamPosition {
  const { events, deep_after = "" } = (position ?? {}) as Partial<DreamPosition>;
  return { events, deep_after };
}

function times(count: number, refusal: Refusal): Refusal[] {
  return Array.from({ length: count }, () => refusal);
}
