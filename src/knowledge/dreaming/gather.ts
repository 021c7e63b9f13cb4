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
import { shownOf } from "./shown.ts";

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
  eventsScanned: number;
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
    this.#gathered = { resolved: [], refused: [], eventsScanned: 0, questions: 0, usage, shownEntities: new Set() };
  }

  /** Rejects with `RunStopped`, with the reason of `stop`, and as reads of events and records do. */
  async run(): Promise<Gathered> {
    const { databaseId, mode, settings } = this.#request;
    const watermark = await this.#deps.runs.watermark(databaseId, "dreaming");
    const before = watermark.position as DreamPosition | undefined;
    const position: DreamPosition = { events: before?.events, deep_after: before?.deep_after ?? "" };
    const old = mode === "deep" ? await this.#oldMemories(position) : [];
    let isBehind = false;
    for (let isFirst = true; ; isFirst = false) {
      const rows = settings.max_events - this.#gathered.eventsScanned;
      const chars = this.#charsLeft();
      isBehind = rows <= 0 || chars < DREAMING_LIMITS.leastBatchChars || this.#request.late.aborted;
      if (isBehind) break;
      this.#tell("reading");
      const page = await this.#page(position.events, Math.min(rows, DREAMING_LIMITS.batchEvents), chars);
      const shown = isFirst ? old : [];
      if (page.events.length > 0 || shown.length > 0) {
        const wasAsked = await this.#ask(page.events, shown);
        isBehind = !wasAsked;
        if (isBehind) break;
      }
      position.events = page.position;
      this.#gathered.eventsScanned += page.events.length;
      if (page.isEnd) break;
    }
    return { ...this.#gathered, watermark, position, isBehind };
  }

  async #oldMemories(position: DreamPosition): Promise<NodeRecord[]> {
    const { databaseId, settings } = this.#request;
    const asked = { realms: settings.realms, after: position.deep_after, limit: DREAMING_LIMITS.oldMemories };
    const { nodes, last } = await this.#deps.store.nodesAfter(databaseId, asked);
    // After the last one it begins again.
    position.deep_after = last ?? "";
    return nodes;
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

  /** False, and nothing is kept of the batch, when the time of the run was up and it has something from before. */
  async #ask(events: readonly ObservedEvent[], old: readonly NodeRecord[]): Promise<boolean> {
    const { store, newId } = this.#deps;
    const { databaseId, database, runId, mode, focus, engine, settings, late, stop } = this.#request;
    const { realms } = settings;
    const near = await neighboursOf(store, databaseId, { realms, events, focus });
    const nodes = [...new Map([...old, ...near].map((node) => [node.id, node])).values()];
    const rights = realmRights(dreamerOf(database));
    const edges = await edgesBetween(store, databaseId, { nodes, realms, rights });
    const shown = shownOf(events, nodes, edges);
    this.#tell("asking");
    const gathered = this.#gathered;
    try {
      const maxOutputTokens = Math.max(1, settings.max_tokens - gathered.usage.total_tokens);
      const prompt = dreamPrompt({ fence: this.#fence, shown, mode, focus, realms });
      const signal = AbortSignal.any([stop, late]);
      const { proposals, malformed, usage } = await askForProposals(engine, prompt, { maxOutputTokens, signal });
      const { resolved, refused } = resolveProposals(proposals, { shown, realms, mode, runId, newId });
      gathered.resolved.push(...resolved);
      gathered.refused.push(...Array.from({ length: malformed }, (): Refusal => "malformed"), ...refused);
      gathered.usage.input_tokens += usage.input_tokens;
      gathered.usage.output_tokens += usage.output_tokens;
      gathered.usage.total_tokens += usage.total_tokens;
      gathered.questions++;
      for (const { id, kind } of nodes) if (kind === "entity") gathered.shownEntities.add(id);
      return true;
    } catch (error) {
      stop.throwIfAborted();
      if (!late.aborted) throw error;
      if (gathered.questions > 0) return false;
      const message = `the engine did not answer within the ${settings.max_minutes} minutes of a dream`;
      throw new RunStopped("engine_timeout", message, { retryable: true });
    }
  }

  /** Characters of events that the next question may have: half of the tokens that are left go to the rest of it. */
  #charsLeft(): number {
    const { settings } = this.#request;
    const tokens = settings.max_tokens - this.#gathered.usage.total_tokens;
    return Math.min(DREAMING_LIMITS.batchChars, Math.floor((tokens * DREAMING_LIMITS.charsPerToken) / 2));
  }

  #tell(phase: string): void {
    const { resolved, refused, eventsScanned: events } = this.#gathered;
    this.#request.onProgress({ phase, events, proposals: resolved.length + refused.length, written: 0 });
  }
}
