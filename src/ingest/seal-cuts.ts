import { releaseShared } from "../core/buffer-pool.ts";
import { EngineError, toErrorRecord, type ErrorRecord } from "../core/errors.ts";
import { LIMITS } from "../core/limits.ts";
import { foldName } from "../core/names.ts";
import { encodingOf, type Encoding } from "../format/encodings.ts";
import { Misfits } from "../format/ndjson/misfits.ts";
import { joinedType, type InferredType } from "../format/ndjson/infer-types.ts";
import { sameColumnType, type ColumnSpec } from "../format/types.ts";
import type { SealBody, SealedExtent, Sealer, SealResult, SealTask } from "./seal.ts";

/**
 * Sealing one large body on all threads: it is cut between lines where its encoding can be cut, each cut is sealed into an extent of its own, and the
 * outcome is what sealing it whole would have given.
 *
 * Cuts do not see each other's new columns while they are scanned. Afterwards their union, in the order of the cuts, is
 * what the body adds. Where that is more than a request or the table may add, or two cuts spell one name differently,
 * the cuts are sealed once more, under exactly the columns that a single scan would have chosen.
 */
export type SealedFlush = {
  extents: SealedExtent[];
  newColumns: readonly ColumnSpec[];
  outcomes: SealResult["outcomes"];
};

/** Below twice this a body is not cut: handing over a cut costs as much as scanning some of it. */
const MIN_CUT_BYTES = 2 * 1024 * 1024;
/** Larger extents would keep queries from pruning. */
const MAX_CUT_BYTES = 16 * 1024 * 1024;

/** Seals a task; a lone body that is worth it by all threads, in two cuts for each so that none waits long for the last. */
export async function sealWholeOrInCuts(seal: Sealer, sealThreads: number, task: SealTask): Promise<SealedFlush> {
  const [body] = task.bodies;
  if (task.bodies.length === 1 && body !== undefined && body.bytes.byteLength >= 2 * MIN_CUT_BYTES && sealThreads > 1) {
    const cutBytes = Math.ceil(body.bytes.byteLength / (2 * sealThreads));
    return sealInCuts(seal, task, Math.min(Math.max(cutBytes, MIN_CUT_BYTES), MAX_CUT_BYTES));
  }
  return sealWhole(seal, task);
}

async function sealWhole(seal: Sealer, task: SealTask): Promise<SealedFlush> {
  const { extent, newColumns, outcomes } = await seal(task);
  return { extents: extent === undefined ? [] : [extent], newColumns, outcomes };
}

/** Seals the task's only body in cuts of about `cutBytes`; whole where its encoding can only be read so. */
export async function sealInCuts(seal: Sealer, task: SealTask, cutBytes: number): Promise<SealedFlush> {
  const [body] = task.bodies;
  if (body === undefined) return { extents: [], newColumns: [], outcomes: [] };
  const { parts } = encodingOf(body.encoding);
  if (parts === undefined) return sealWhole(seal, task);
  const results = await sealEach(seal, task, cutsOf(body, parts, cutBytes));
  const maxNewColumns = body.maxNewColumns ?? LIMITS.newColumnsPerRequest;
  const { newColumns, agreed } = unionOf(task.columns, results, maxNewColumns);
  if (agreed) return join(results, newColumns);
  for (const { extent } of results) if (extent !== undefined) releaseShared(extent.bytes);
  const columns = [...task.columns, ...newColumns];
  return join(await sealEach(seal, { ...task, columns }, cutsOf(body, parts, cutBytes, 0)), newColumns);
}

function cutsOf(
  body: SealBody,
  parts: NonNullable<Encoding["parts"]>,
  cutBytes: number,
  maxNewColumns: number = body.maxNewColumns ?? LIMITS.newColumnsPerRequest,
): SealBody[] {
  const { arrivals, ...common } = { ...body, maxNewColumns, mayBeEmpty: true };
  let lines = 0;
  return parts.cut(body.bytes, cutBytes).map((bytes) => {
    const cut: SealBody = Object.assign({}, common, { bytes });
    if (arrivals === undefined) return cut;
    const before = lines;
    lines += parts.countLines(bytes);
    // Copied: a view would take the whole of its buffer along to the other thread.
    return Object.assign(cut, { arrivals: arrivals.slice(before, lines) });
  });
}

/**
 * Seals every cut, and settles only when all are done with the body: its buffer is used again afterwards, also when one
 * of them has failed.
 */
async function sealEach(seal: Sealer, task: SealTask, cuts: readonly SealBody[]): Promise<SealResult[]> {
  const sealing = cuts.map((cut) => seal({ ...task, bodies: [cut] }));
  await Promise.allSettled(sealing);
  return Promise.all(sealing);
}

/** The columns that one scan would have added, and whether every cut has found just some of them. */
function unionOf(columns: readonly ColumnSpec[], results: readonly SealResult[], maxNewColumns: number) {
  const union = new Map<string, ColumnSpec>();
  let agreed = true;
  const wideLongs = new Set(results.flatMap(({ wideLongs: names = [] }) => names.map(foldName)));
  for (const column of results.flatMap(({ newColumns }) => newColumns)) {
    const folded = foldName(column.name);
    const known = union.get(folded);
    if (known === undefined) union.set(folded, column);
    else if (known.name !== column.name || !sameColumnType(known.type, column.type)) {
      agreed = false;
      const joined = joinedType(known.type.kind as InferredType, column.type.kind as InferredType);
      const kind = joined === "real" && wideLongs.has(folded) ? "dynamic" : joined;
      union.set(folded, { ...known, type: { kind } });
    }
  }
  const most = Math.min(maxNewColumns, LIMITS.columnsPerTable - columns.length);
  return { newColumns: [...union.values()].slice(0, most), agreed: agreed && union.size <= most };
}

function join(results: readonly SealResult[], newColumns: readonly ColumnSpec[]): SealedFlush {
  let rows = 0;
  let lines = 0;
  let unknownFields = newColumns.length > 0;
  const misfits = new Misfits();
  const fractions = new Set<string>();
  for (const { outcomes } of results) {
    const [outcome] = outcomes;
    // A single scan stops at the first line that fails, which is in the first cut that fails.
    if (outcome?.ok === false) return failed(inBody(outcome.error, lines));
    misfits.addAll(outcome?.misfits ?? [], lines);
    rows += outcome?.rows ?? 0;
    lines += outcome?.lines ?? 0;
    unknownFields ||= outcome?.unknownFields ?? false;
    for (const name of outcome?.fractions ?? []) fractions.add(name);
  }
  if (rows === 0) return failed(toErrorRecord(new EngineError("bad_request_body", "the body has no rows")));
  const extents = results.flatMap(({ extent }) => (extent === undefined ? [] : [extent]));
  const unfit = misfits.all();
  const more = {
    ...(unknownFields && { unknownFields }),
    ...(unfit !== undefined && { misfits: unfit }),
    ...(fractions.size > 0 && { fractions: [...fractions] }),
  };
  return { extents, newColumns, outcomes: [{ ok: true, rows, lines, ...more }] };
}

function failed(error: ErrorRecord): SealedFlush {
  return { extents: [], newColumns: [], outcomes: [{ ok: false, error }] };
}

/** The error with its line counted from the start of the body, which has `linesBefore` lines in front of the cut. */
function inBody(error: ErrorRecord, linesBefore: number): ErrorRecord {
  const { line } = error.details;
  if (line === undefined) return error;
  const inWhole = line + linesBefore;
  const message = error.message.replace(/^line \d+/, `line ${inWhole}`);
  return { ...error, message, details: { ...error.details, line: inWhole } };
}
