import type { Caller } from "../../../auth/caller.ts";
import type { Catalog } from "../../../catalog/catalog.ts";
import { Backoff } from "../../../core/backoff.ts";
import { foldName } from "../../../core/names.ts";
import type { Log } from "../../../core/log.ts";
import type { Random } from "../../../core/random.ts";
import type { OpenedEngine } from "../../agent/engines/engine.ts";
import type { AgentEngines } from "../../agent/engines/engines.ts";
import { isHolding, standingOf } from "../../filesync/duplicates.ts";
import { DUPLICATES } from "../../filesync/project-memory.ts";
import { vectorKeyOf } from "../../memory/embed/vector-text.ts";
import type { NodeRecord } from "../../memory/model.ts";
import type { OpenPair, Verdict, Verdicts } from "../../memory/verdicts.ts";
import { PIPELINE_LIMITS } from "../limits.ts";
import { askAboutPairs, type AlikeNodes } from "./ask-about-pairs.ts";
import { duplicatesAmong, mayBeShown, placeOf, type ConsolidationDeps } from "./consolidation.ts";
import type { Link } from "./conversations.ts";
import { commitLinks, missingLinks } from "./links.ts";

export type JudgingDeps = ConsolidationDeps & {
  verdicts: Verdicts;
  catalog: Pick<Catalog, "databases">;
  /** Undefined in a process that asks no language model: pairs wait for one that does. */
  engines: Pick<AgentEngines, "current" | "open"> | undefined;
  random: Random;
  log: Log;
};

/** A pair that may be asked about, with what its memories say now. */
type Candidate = AlikeNodes & { pair: OpenPair; link: Link };

/** Pairs of one realm of one database: no question has memories of two. */
type Group = { databaseId: number; database: string; realm: string; pairs: OpenPair[] };

/**
 * Has the agent's engine say whether memories that are alike say the same, and links those that do. Consolidation notes the
 * pairs, and never waits for this: where there is no engine, or it fails, they wait, and nothing else changes.
 */
export class Judging {
  readonly #deps: JudgingDeps;
  /** An engine that fails is left alone for a while. */
  readonly #rest: Backoff;
  #restsUntilMs = 0;

  constructor(deps: JudgingDeps) {
    const { restMs: firstMs, longestRestMs: mostMs } = PIPELINE_LIMITS;
    this.#deps = deps;
    this.#rest = new Backoff({ firstMs, mostMs, random: deps.random });
  }

  /** Asks about the pairs that have waited longest, as far as one turn and the day allow. */
  async turn(signal: AbortSignal): Promise<void> {
    const { verdicts, engines, clock } = this.#deps;
    signal.throwIfAborted();
    if (engines === undefined || clock.monotonicMs() < this.#restsUntilMs) return;
    const due = await verdicts.due(PIPELINE_LIMITS.judgedPerTurn);
    if (due.length === 0 || !(await this.#hasEngine(engines))) return;
    for (const group of await this.#groups(due)) {
      if (!(await this.#judge(engines, group, signal))) return;
    }
  }

  async #hasEngine(engines: Pick<AgentEngines, "current">): Promise<boolean> {
    try {
      return (await engines.current()) !== undefined;
    } catch (error) {
      this.#leaveAlone(error);
      return false;
    }
  }

  /** Of a dropped database the sweep deletes the pairs. */
  async #groups(due: readonly OpenPair[]): Promise<Group[]> {
    const names = new Map((await this.#deps.catalog.databases()).map(({ id, name }) => [id, name]));
    const groups = new Map<string, Group>();
    for (const pair of due) {
      const database = names.get(pair.databaseId);
      if (database === undefined) continue;
      const key = JSON.stringify([pair.databaseId, pair.realm]);
      const { databaseId, realm } = pair;
      const group = groups.get(key) ?? { databaseId, database, realm, pairs: [] };
      group.pairs.push(pair);
      groups.set(key, group);
    }
    return [...groups.values()];
  }

  /** False where the turn ends with it. */
  async #judge(engines: Pick<AgentEngines, "open">, group: Group, signal: AbortSignal): Promise<boolean> {
    const candidates = await this.#candidates(group);
    if (candidates.length === 0) return true;
    let engine: OpenedEngine;
    try {
      engine = await engines.open(originOf(group.database));
    } catch (error) {
      this.#leaveAlone(error);
      return false;
    }
    for (const question of questionsOf(candidates)) {
      signal.throwIfAborted();
      if (!(await this.#ask(engine, group, question, signal))) return false;
    }
    return true;
  }

  async #ask(
    engine: OpenedEngine,
    group: Group,
    question: readonly Candidate[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { verdicts, clock, random } = this.#deps;
    const perDay = PIPELINE_LIMITS.judgedPerDay;
    if (!(await verdicts.take(question.length, { nowMs: clock.nowMs(), perDay }))) return false;
    let said: (Verdict | undefined)[];
    try {
      said = await askAboutPairs(engine, question, { clock, random, signal });
    } catch (error) {
      signal.throwIfAborted();
      await this.#failed(engine, question);
      this.#leaveAlone(error);
      return false;
    }
    this.#rest.reset();
    const judged = question.flatMap((candidate, i) => {
      const verdict = said[i];
      return verdict === undefined ? [] : [{ ...candidate, verdict }];
    });
    await this.#commit(engine, group, judged);
    await this.#failed(
      engine,
      question.filter((_, i) => said[i] === undefined),
    );
    return true;
  }

  /** Verdicts and the links that follow from them are there together, so that neither is lost. */
  async #commit(
    engine: OpenedEngine,
    { databaseId }: Group,
    judged: readonly (Candidate & { verdict: Verdict })[],
  ): Promise<void> {
    const { verdicts, metrics, vectors } = this.#deps;
    if (judged.length === 0) return;
    const model = engine.modelName;
    const { place, position } = await placeOf(this.#deps, databaseId);
    const links = judged.flatMap(({ verdict, link }) => (verdict === "same" ? [link] : []));
    const also = judged.map(({ pair, verdict }) => verdicts.judgeStatement(pair, { verdict, model }));
    const asked = { ...place, model: { engine: engine.kind, model } };
    await commitLinks(this.#deps, asked, { links, position, records: judged.length, also });
    for (const { verdict } of judged) metrics.verdicts.inc({ outcome: verdict });
    // Behind one that differs there may be another one that is nearly as much alike.
    const differing = judged.flatMap(({ verdict, one, other }) => (verdict === "different" ? [one, other] : []));
    const { links: further, undecided } = await duplicatesAmong(this.#deps, databaseId, distinct(differing), vectors);
    await verdicts.open(databaseId, undecided);
    if (further.length === 0) return;
    const now = await placeOf(this.#deps, databaseId);
    await commitLinks(this.#deps, now.place, { links: further, position: now.position, records: differing.length });
  }

  /** The pairs wait ever longer, and in the end stay undecided: people are told of them as before. */
  async #failed(engine: OpenedEngine, failed: readonly Candidate[]): Promise<void> {
    const { verdicts, records, metrics } = this.#deps;
    const { judgedFailures, judgedAgainMs } = PIPELINE_LIMITS;
    metrics.verdicts.inc({ outcome: "failed" }, failed.length);
    const isLast = ({ pair }: Candidate): boolean => pair.failures + 1 >= judgedFailures;
    await verdicts.postpone(
      failed.filter((each) => !isLast(each)).map(({ pair }) => ({ pair, ms: judgedAgainMs * 4 ** pair.failures })),
    );
    const judged = { verdict: "undecided", model: engine.modelName } as const;
    const last = failed.filter(isLast).map(({ pair }) => verdicts.judgeStatement(pair, judged));
    if (last.length > 0) await records.transact(last);
  }

  #leaveAlone(error: unknown): void {
    const { clock, log } = this.#deps;
    const restMs = this.#rest.next();
    this.#restsUntilMs = clock.monotonicMs() + restMs;
    log.warn({ err: error, retry_secs: Math.ceil(restMs / 1_000) }, "the engine did not judge memories that are alike");
  }

  /** Forgets pairs that need no verdict any more: a text has changed, one does not hold, or somebody has decided. */
  async #candidates({ databaseId, realm, pairs }: Group): Promise<Candidate[]> {
    const { store, clock, verdicts } = this.#deps;
    const ids = pairs.flatMap(({ firstId, secondId }) => [firstId, secondId]);
    const nodes = new Map<string, NodeRecord>();
    for (const { current } of await store.known(databaseId, "node", ids)) {
      if (current?.kind === "node" && !current.erased) nodes.set(current.record.id, current.record);
    }
    const nowUs = clock.nowMs() * 1_000;
    const said = (id: string, key: string): NodeRecord | undefined => {
      const node = nodes.get(id);
      const isAsThen = isHolding(node, nowUs) && node.realm === realm && vectorKeyOf(node) === key;
      return isAsThen && mayBeShown(realm) ? node : undefined;
    };
    const possible = pairs.flatMap((pair) => {
      const one = said(pair.firstId, pair.firstKey);
      const other = said(pair.secondId, pair.secondKey);
      return one === undefined || other === undefined ? [] : [{ pair, one, other, link: linkOf(one, other) }];
    });
    const missing = new Set(
      await missingLinks(
        this.#deps,
        databaseId,
        possible.map(({ link }) => link),
      ),
    );
    const candidates = possible.filter(({ link }) => missing.has(link));
    const asked = new Set(candidates.map(({ pair }) => pair));
    await verdicts.drop(pairs.filter((pair) => !asked.has(pair)));
    return candidates;
  }
}

/** Which of the two stands for both is never the model's to say. */
function linkOf(one: NodeRecord, other: NodeRecord): Link {
  const of = standingOf(one, other);
  const node = of === one ? other : one;
  const keys = { src: vectorKeyOf(node), dst: vectorKeyOf(of) };
  return { realm: node.realm, src: node.id, dst: of.id, rel: DUPLICATES, keys };
}

/** Several pairs each; one that failed is asked about alone, so that it fails for no other. */
function questionsOf(candidates: readonly Candidate[]): Candidate[][] {
  const fresh = candidates.filter(({ pair }) => pair.failures === 0);
  const alone = candidates.filter(({ pair }) => pair.failures > 0).map((each) => [each]);
  const together: Candidate[][] = [];
  for (let from = 0; from < fresh.length; from += PIPELINE_LIMITS.judgedAtOnce) {
    together.push(fresh.slice(from, from + PIPELINE_LIMITS.judgedAtOnce));
  }
  return [...together, ...alone];
}

function distinct(nodes: readonly NodeRecord[]): NodeRecord[] {
  return [...new Map(nodes.map((node) => [node.id, node])).values()];
}

/** Each use of a key is in the audit log. */
function originOf(database: string): { caller: Caller; address: string; requestId: string } {
  const caller: Caller = {
    subject: "consolidation",
    kind: "internal",
    role: "read",
    databases: [foldName(database)],
  };
  return { caller, address: "", requestId: "consolidation" };
}
