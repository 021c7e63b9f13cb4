import type { IdSource } from "../../core/ids.ts";
import type { Random } from "../../core/random.ts";
import type { OpenedEngine } from "../agent/engines/engine.ts";
import type { Usage } from "../agent/run/events.ts";
import { Fence } from "../agent/engines/fence.ts";
import { RunStopped } from "../agent/run/run-end.ts";
import type { NodeRecord } from "../memory/model.ts";
import { realmRights } from "../memory/realms.ts";
import { FIREHOSE_TABLE } from "../memory/service.ts";
import type { MemorySettings } from "../memory/settings.ts";
import type { MemoryStore } from "../memory/store.ts";
import { askForProposals } from "./ask-model.ts";
import { dreamerOf, type DreamMode } from "./dream-job.ts";
import { DREAMING_LIMITS } from "./limits.ts";
import { edgesBetween, neighboursOf } from "./neighbours.ts";
import { maskRow } from "./mask-row.ts";
import type { EventSource, ObservedEvent } from "./ports.ts";
import { dreamPrompt } from "./prompt.ts";
import { resolveProposals, type Refusal, type Resolved } from "./resolve.ts";
import type { PipelineRuns, RunProgress, Watermark } from "./runs.ts";
import { fittingEdges, fittingNodes, shownOf } from "./shown.ts";

export type GatherDeps = {
  store: MemoryStore;
  runs: Pick<PipelineRuns, "watermark">;
  events: EventSource;
  random: Random;
  newId: IdSource;
};

export type GatherRequest = {
  databaseId: number;
  database: string;
  runId: string;
  mode: DreamMode;
  focus: string | undefined;
  engine: OpenedEngine;
  settings: MemorySettings["dreaming"];
  /** Aborted when the time of the run is up. */
  late: AbortSignal;
  /** Aborted when the run must end. */
  stop: AbortSignal;
  onProgress: (progress: RunProgress) => void;
};

/** What a dream has read and been proposed: nothing of it is written. */
export type Gathered = {
  /** In the order in which they are to be carried out. */
  resolved: Resolved[];
  refused: Refusal[];
  /** With those that were skipped. */
  eventsScanned: number;
  /** Events on each of which the engine failed. */
  skippedEvents: number;
  /** Why the run asked no further, or skipped events. */
  failure: RunStopped | undefined;
  questions: number;
  usage: Usage;
  watermark: Watermark;
  /** The next watermark. */
  position: DreamPosition;
  /** Whether there are more events than the run may read. */
  isBehind: boolean;
  /** Ids of entities that the model was shown. */
  shownEntities: Set<string>;
};

/** The watermark of dreams: the events that were read, and the memory that deep dreams have come to. */
export type DreamPosition = { events: unknown; deep_after: string };

/** How much the next question shows: fewer and fewer events while the engine fails on them, then one event alone. */
type Extent = { events: number; withMemories: boolean };
const FULL: Extent = { events: DREAMING_LIMITS.batchEvents, withMemories: true };

/** What became of a question. `stopped`: the run asks no further, and keeps what it has from before. */
type Outcome = "answered" | "stopped" | "failed";

/** Reads events in batches, and asks the model about each, until all are read or the run has taken what it may. */
export class Gathering {
  readonly #deps: GatherDeps;
  readonly #request: GatherRequest;
  readonly #fence: Fence;
  readonly #gathered: Omit<Gathered, "watermark" | "position" | "isBehind">;

  constructor(deps: GatherDeps, request: GatherRequest) {
    this.#deps = deps;
    this.#request = request;
    this.#fence = new Fence(deps.random);
    const usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
    this.#gathered = {
      resolved: [],
      refused: [],
      eventsScanned: 0,
      skippedEvents: 0,
      failure: undefined,
      questions: 0,
      usage,
      shownEntities: new Set(),
    };
  }

  /** Rejects with `RunStopped`, with the reason of `stop`, and as reads of events and records do. */
  async run(): Promise<Gathered> {
    const { databaseId, mode, settings } = this.#request;
    const watermark = await this.#deps.runs.watermark(databaseId, "dreaming");
    const before = watermark.position as DreamPosition | undefined;
    const position: DreamPosition = { events: before?.events, deep_after: before?.deep_after ?? "" };
    let old = mode === "deep" ? await this.#oldMemories(position) : [];
    let isBehind = false;
    let extent = FULL;
    for (;;) {
      const rows = settings.max_events - this.#gathered.eventsScanned;
      isBehind = rows <= 0 || !this.#mayAsk(extent);
      if (isBehind) break;
      this.#tell("reading");
      const page = await this.#page(position.events, Math.min(rows, extent.events), this.#eventChars());
      const count = page.events.length;
      const shown = extent.withMemories ? old : [];
      if (count > 0 || shown.length > 0) {
        const outcome = await this.#ask(page.events, shown, extent);
        isBehind = outcome === "stopped";
        if (isBehind) break;
        if (outcome === "failed") {
          const isAlone = count <= 1 && !extent.withMemories;
          if (!isAlone) {
            extent = narrower(count);
            continue;
          }
          this.#gathered.skippedEvents += count;
        }
      }
      position.events = page.position;
      this.#gathered.eventsScanned += count;
      [extent, old] = [FULL, []];
      if (page.isEnd) break;
    }
    const { failure, questions, skippedEvents } = this.#gathered;
    // The time was up before the events that the engine fails on were found.
    if (failure !== undefined && isBehind && questions + skippedEvents === 0) throw failure;
    return { ...this.#gathered, watermark, position, isBehind };
  }

  /** A search for the events that the engine fails on goes on whatever it takes, for else the next dream had to repeat it. */
  #mayAsk(extent: Extent): boolean {
    if (this.#request.late.aborted || this.#gathered.skippedEvents >= DREAMING_LIMITS.skippedEvents) return false;
    if (this.#proposalsLeft() <= 0) return false;
    return extent !== FULL || this.#inputChars() / 2 >= DREAMING_LIMITS.leastBatchChars;
  }

  async #oldMemories(position: DreamPosition): Promise<NodeRecord[]> {
    const { databaseId, settings } = this.#request;
    const asked = { realms: settings.realms, after: position.deep_after, limit: DREAMING_LIMITS.oldMemories };
    const { nodes, last } = await this.#deps.store.nodesAfter(databaseId, asked);
    // Half of the room for memories is for those that are close to the events.
    const chars = this.#memoryChars();
    const shown = fittingNodes(nodes, Math.floor((chars * 3) / 8));
    // After the last one it begins again; those that do not fit come with the next deep dream.
    position.deep_after = shown.length < nodes.length ? (shown.at(-1)?.id ?? nodes[0]?.id ?? "") : (last ?? "");
    return shown;
  }

  async #page(position: unknown, rows: number, bytes: number) {
    const { database, stop } = this.#request;
    const caller = dreamerOf(database);
    const request = { caller, database, table: FIREHOSE_TABLE, position, rows, bytes, signal: stop };
    const page = await this.#deps.events.read(request);
    const events = page.rows.map(({ id, text }): ObservedEvent => {
      const row = JSON.parse(text) as { at?: unknown };
      const masked = maskRow(row);
      return { id, at: String(row.at), text: masked === row ? text : JSON.stringify(masked) };
    });
    return { events, position: page.position, isEnd: page.isEnd };
  }

  /**
   * Rejects with the engine's failure while there is nothing from before that would be lost with it, unless the failure is
   * about what was shown.
   */
  async #ask(events: readonly ObservedEvent[], old: readonly NodeRecord[], { withMemories }: Extent): Promise<Outcome> {
    const { store, newId } = this.#deps;
    const { databaseId, database, runId, mode, focus, engine, settings, late, stop } = this.#request;
    const { realms } = settings;
    const near = withMemories ? await neighboursOf(store, databaseId, { realms, events, focus }) : [];
    const chars = this.#memoryChars();
    const distinct = [...new Map([...old, ...near].map((node) => [node.id, node])).values()];
    const nodes = fittingNodes(distinct, Math.floor((chars * 3) / 4));
    const rights = realmRights(dreamerOf(database));
    const edges = fittingEdges(await edgesBetween(store, databaseId, { nodes, realms, rights }), Math.floor(chars / 4));
    const shown = shownOf(events, nodes, edges);
    this.#tell("asking");
    const gathered = this.#gathered;
    try {
      const prompt = dreamPrompt({ fence: this.#fence, shown, mode, focus, realms });
      const { proposals, malformed } = await this.#answer(engine, prompt, AbortSignal.any([stop, late]));
      const { resolved, refused } = resolveProposals(proposals, { shown, realms, mode, runId, newId });
      const room = this.#proposalsLeft();
      const beyond = Math.max(0, resolved.length - room);
      gathered.resolved.push(...resolved.slice(0, room));
      gathered.refused.push(...times(malformed, "malformed"), ...refused, ...times(beyond, "limit"));
      gathered.questions++;
      for (const { id, kind } of nodes) if (kind === "entity") gathered.shownEntities.add(id);
      if (gathered.skippedEvents === 0) gathered.failure = undefined;
      return "answered";
    } catch (error) {
      stop.throwIfAborted();
      const hasSome = gathered.questions + gathered.skippedEvents > 0;
      if (late.aborted) {
        if (hasSome) return "stopped";
        const message = `the engine did not answer within the ${settings.max_minutes} minutes of a dream`;
        throw new RunStopped("engine_timeout", message, { retryable: true });
      }
      if (!(error instanceof RunStopped)) throw error;
      gathered.failure = error;
      if (gathered.questions === 0 && error.isOfContent) return "failed";
      if (hasSome) return "stopped";
      throw error;
    }
  }

  /** An answer that has no proposals is asked for once more. */
  async #answer(engine: OpenedEngine, prompt: Parameters<typeof askForProposals>[1], signal: AbortSignal) {
    const options = { maxOutputTokens: this.#answerTokens(), signal };
    for (let isAgain = false; ; isAgain = true) {
      try {
        const answer = await askForProposals(engine, prompt, options);
        this.#spend(answer.usage);
        return answer;
      } catch (error) {
        if (!(error instanceof RunStopped)) throw error;
        if (error.usage !== undefined) this.#spend(error.usage);
        if (isAgain || !error.isOfContent || !error.retryable) throw error;
      }
    }
  }

  #proposalsLeft(): number {
    return this.#request.settings.max_writes * DREAMING_LIMITS.proposalsPerWrite - this.#gathered.resolved.length;
  }

  #spend({ input_tokens: input, output_tokens: output, total_tokens: total }: Usage): void {
    const { usage } = this.#gathered;
    usage.input_tokens += input;
    usage.output_tokens += output;
    usage.total_tokens += total;
  }

  /** Tokens of a full answer: an answer that is cut off for want of tokens would fail the same way each time. */
  #answerTokens(): number {
    const { engine, settings } = this.#request;
    return Math.min(engine.maxOutputTokens, Math.floor(settings.max_tokens / 2));
  }

  /** Characters that the next question may have, so that a full answer to it fits in the tokens that are left. */
  #inputChars(): number {
    const left = this.#request.settings.max_tokens - this.#gathered.usage.total_tokens - this.#answerTokens();
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
    const { resolved, refused, eventsScanned: events } = this.#gathered;
    this.#request.onProgress({ phase, events, proposals: resolved.length + refused.length, written: 0 });
  }
}

function narrower(count: number): Extent {
  const events = Math.max(1, Math.floor(count / 2));
  return { events, withMemories: events > 1 };
}

function times(count: number, refusal: Refusal): Refusal[] {
  return Array.from({ length: count }, () => refusal);
}
