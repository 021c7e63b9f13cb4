import type { Clock } from "../../core/clock.ts";
import type { Random } from "../../core/random.ts";
import type { NodeRecord } from "../memory/model.ts";
import { maskSecrets } from "../memory/secrets.ts";
import { curate, needsCuration, uncurated, type Curation } from "./curation.ts";
import { linksIn, parseFact, printFact, type FactFile } from "./fact-file.ts";
import {
  filesIn,
  readText,
  removeFile,
  writeText,
  type MemoryFolder,
  type SeenFile,
  type Skipped,
  removeLeftovers,
} from "./folder.ts";
import { INDEX_NAME, withEntries, type IndexEntry } from "./index-file.ts";
import { linkEdges } from "./links.ts";
import { nodeHash, type ProjectMemory } from "./project-memory.ts";
import { newFileName, promotable, type Promotion } from "./promotion.ts";
import { emptyState, nothingCurated, type ProjectState, type SyncedFile } from "./state.ts";
import { factOf, sameFact } from "./types.ts";

/**
 * - `saved`, `invalidated`: the memory followed its file.
 * - `written`, `removed`: the file followed its memory; `promoted`: it had none before.
 * - `conflict`: both had changed. The memory says what the file says; what it had said is a memory of its own.
 * - `skipped`: nothing was done, for the reason given.
 */
export type Action = "saved" | "invalidated" | "written" | "removed" | "promoted" | "conflict" | "skipped";
export type Done = { file: string; action: Action; reason?: string };

export type ProjectSyncDeps = {
  memory: ProjectMemory;
  folder: MemoryFolder;
  clock: Pick<Clock, "nowMs">;
  random: Random;
  promotion: Promotion;
  curation: Curation;
  /** Says what would be done, and changes nothing. */
  isDry: boolean;
};

/** A file that was written in the same moment in which it was read may change again without its time changing. */
const SAME_MOMENT_MS = 2_000;

type Read = { text: string; hash: string; seen: SeenFile; fact: FactFile };

/** What one file and its memory need. */
type Step =
  | { kind: "none"; name: string; pair: SyncedFile }
  | { kind: "save"; name: string; read: Read; node: NodeRecord | undefined; copy: boolean }
  | { kind: "pair"; name: string; read: Read; node: NodeRecord }
  | { kind: "write"; name: string; node: NodeRecord; known: SyncedFile; isThere: boolean }
  | { kind: "remove"; name: string; known: SyncedFile }
  | { kind: "invalidate"; name: string; known: SyncedFile }
  | { kind: "forget"; name: string }
  | { kind: "skip"; name: string; reason: string; pair: SyncedFile | undefined };

/** Brings the files of one project and its memories in step; resolves to what was done, and the state after it. */
export async function syncProject(
  deps: ProjectSyncDeps,
  synced: ProjectState,
): Promise<{ done: Done[]; state: ProjectState }> {
  const { clock, folder, memory } = deps;
  if (!deps.isDry) await removeLeftovers(folder);
  const readAtMs = clock.nowMs();
  const { files, skipped } = await filesIn(folder);
  const sinceThen = await memory.changed(synced.untilUs);
  // A memory that ends before what was synced is another one: an earlier state of it, or a new one in its place.
  const isOther = sinceThen.untilUs < synced.headUs;
  const state = isOther ? emptyState() : synced;
  const { nodes, hasEdges, untilUs } = isOther ? await memory.changed(0) : sinceThen;
  const steps = await stepsOf(deps, { state, files, skipped, nodes });
  const isActive = steps.some(({ kind }) => kind !== "none" && kind !== "skip");
  const newest = Math.max(0, ...files.map(({ mtimeMs }) => mtimeMs));
  const activeAtMs = isActive && state.untilUs > 0 ? readAtMs : state.untilUs > 0 ? state.activeAtMs : newest;
  const done = steps.flatMap(doneOf);
  if (deps.isDry) return { done, state };
  const after: ProjectState = { ...state, untilUs, readAtMs, activeAtMs, files: {} };
  await follow(deps, steps, { state, after, done });
  after.edges = await linkEdges(memory, after);
  const touched = touchedIn(nodes, state, after);
  if (touched.size > 0 || hasEdges) after.curation = uncurated(state.curation, (id) => touched.has(id));
  done.push(...(await tidy(deps, after)));
  done.push(...(await updateIndex(deps, after)));
  after.headUs = await memory.headUs();
  return { done, state: after };
}

type Sides = {
  state: ProjectState;
  files: readonly SeenFile[];
  skipped: readonly Skipped[];
  nodes: ReadonlyMap<string, NodeRecord | undefined>;
};

async function stepsOf(deps: ProjectSyncDeps, { state, files, skipped, nodes }: Sides): Promise<Step[]> {
  const { folder, memory } = deps;
  const reads = new Map<string, Read>();
  const steps: Step[] = skipped.map(({ file, reason }) => ({
    kind: "skip",
    name: file,
    reason,
    pair: state.files[file],
  }));
  const unread = new Set(skipped.map(({ file }) => file));
  const untouched = new Set<string>();
  for (const seen of files) {
    const known = state.files[seen.name];
    if (known !== undefined && isUntouched(seen, known, state)) {
      untouched.add(seen.name);
      continue;
    }
    const read = await readText(folder, seen.name);
    const fact = read === undefined ? undefined : parseFact(read.text, seen.name);
    if (read !== undefined && fact !== undefined) reads.set(seen.name, { ...read, fact });
    else {
      const reason =
        read === undefined ? "it cannot be read as text" : "its front matter is no YAML with names and values";
      steps.push({ kind: "skip", name: seen.name, reason, pair: known });
      unread.add(seen.name);
    }
  }
  const pairs = [...reads].map(([name, { fact }]) => state.files[name]?.nodeId ?? fact.nodeId ?? memory.idOf(name));
  const current = await memory.current([...pairs, ...[...reads.keys()].map((name) => memory.idOf(name))]);
  const names = [...new Set([...untouched, ...reads.keys(), ...Object.keys(state.files)])].filter(
    (name) => !unread.has(name),
  );
  const paired = new Set(Object.values(state.files).map(({ nodeId }) => nodeId));
  for (const name of names) {
    const known = state.files[name];
    const read = reads.get(name);
    if (known === undefined) {
      // What another file was written for belongs to that one: this is a copy of it.
      const named =
        read?.fact.nodeId !== undefined && !paired.has(read.fact.nodeId) ? current.get(read.fact.nodeId) : undefined;
      const node = named ?? current.get(memory.idOf(name));
      if (read !== undefined) steps.push(newPair(name, read, node?.realm === memory.realm ? node : undefined));
      continue;
    }
    const node = nodes.has(known.nodeId) ? nodes.get(known.nodeId) : undefined;
    const hasNodeChanged = nodes.has(known.nodeId) && nodeHash(node) !== known.node;
    const isThere = read !== undefined || untouched.has(name);
    const hasFileChanged = read !== undefined && read.hash !== known.file;
    if (!isThere) steps.push(goneStep(name, known, hasNodeChanged ? node : undefined, hasNodeChanged));
    else if (!hasFileChanged) steps.push(hasNodeChanged ? nodeStep(name, known, node) : sameStep(name, known, read));
    else {
      const before = node ?? current.get(known.nodeId);
      if (!hasNodeChanged || nodeHash(node) === "") steps.push({ kind: "save", name, read, node: before, copy: false });
      else steps.push(newPair(name, read, before));
    }
  }
  return checked(deps, steps);
}

function isUntouched({ size, mtimeMs }: SeenFile, known: SyncedFile, { readAtMs }: ProjectState): boolean {
  return size === known.size && mtimeMs === known.mtimeMs && mtimeMs < readAtMs - SAME_MOMENT_MS;
}

/** Both sides have something to say, and nothing tells which one said it first. */
function newPair(name: string, read: Read, node: NodeRecord | undefined): Step {
  if (node === undefined || nodeHash(node) === "") return { kind: "save", name, read, node, copy: false };
  if (sameFact(factOf(node, read.fact), read.fact)) return { kind: "pair", name, read, node };
  return { kind: "save", name, read, node, copy: true };
}

function goneStep(name: string, known: SyncedFile, node: NodeRecord | undefined, hasNodeChanged: boolean): Step {
  if (!hasNodeChanged) return { kind: "invalidate", name, known };
  // What was changed since is not lost with the file.
  return node === undefined || nodeHash(node) === ""
    ? { kind: "forget", name }
    : { kind: "write", name, node, known, isThere: false };
}

function nodeStep(name: string, known: SyncedFile, node: NodeRecord | undefined): Step {
  if (node === undefined || nodeHash(node) === "") return { kind: "remove", name, known };
  return { kind: "write", name, node, known, isThere: true };
}

function sameStep(name: string, known: SyncedFile, read: Read | undefined): Step {
  return {
    kind: "none",
    name,
    pair: read === undefined ? known : { ...known, size: read.seen.size, mtimeMs: read.seen.mtimeMs },
  };
}

/** Facts that the memory would refuse are left where they are. */
function checked({ memory }: ProjectSyncDeps, steps: readonly Step[]): Step[] {
  return steps.map((step) => {
    if (step.kind !== "save") return step;
    const reason = memory.problemOf(step.name, step.read.fact);
    return reason === undefined ? step : { kind: "skip", name: step.name, reason, pair: undefined };
  });
}

function doneOf(step: Step): Done[] {
  const { name: file } = step;
  switch (step.kind) {
    case "save":
      return [{ file, action: step.copy ? "conflict" : "saved" }];
    case "write":
      return [{ file, action: "written" }];
    case "remove":
      return [{ file, action: "removed", reason: "its memory does not hold any more" }];
    case "invalidate":
      return [{ file, action: "invalidated", reason: "the file is gone" }];
    case "skip":
      return [{ file, action: "skipped", reason: step.reason }];
    case "none":
    case "pair":
    case "forget":
      return [];
  }
}

type Following = { state: ProjectState; after: ProjectState; done: Done[] };

async function follow(deps: ProjectSyncDeps, steps: readonly Step[], { state, after, done }: Following): Promise<void> {
  const { clock, memory } = deps;
  const nowUs = clock.nowMs() * 1_000;
  const saves = steps.filter((step) => step.kind === "save");
  const facts = saves.map(({ name, read, node }) => ({ file: name, fact: read.fact, before: node, nowUs }));
  const copies = saves.flatMap(({ name, node, copy }) =>
    copy && node !== undefined ? [{ node, file: name, nowUs }] : [],
  );
  await memory.save(facts, copies);
  const idOf = ({ name, node }: { name: string; node: NodeRecord | undefined }): string =>
    node?.id ?? memory.idOf(name);
  const saved = await memory.current(saves.map(idOf));
  for (const step of steps) {
    switch (step.kind) {
      case "none":
        after.files[step.name] = step.pair;
        break;
      case "skip":
        if (step.pair !== undefined) after.files[step.name] = step.pair;
        break;
      case "save":
      case "pair": {
        const node = step.kind === "pair" ? step.node : saved.get(idOf(step));
        if (node !== undefined)
          after.files[step.name] = pairOf(
            step.read,
            node,
            state.files[step.name]?.promoted ?? step.read.fact.nodeId !== undefined,
          );
        break;
      }
      case "invalidate":
        await memory.invalidate(step.known.nodeId, `the file ${step.name} is gone`);
        break;
      case "write":
      case "remove": {
        const problem = await followMemory(deps, step, after);
        if (problem === undefined) break;
        // Looked at again by the next pass.
        after.files[step.name] = step.known;
        after.untilUs = state.untilUs;
        replaceDone(done, { file: step.name, action: "skipped", reason: problem });
        break;
      }
      case "forget":
        break;
    }
  }
}

function replaceDone(done: Done[], instead: Done): void {
  const at = done.findIndex(({ file }) => file === instead.file);
  done.splice(at, at === -1 ? 0 : 1, instead);
}

const CHANGED = "it was changed in this moment";

/** Undefined when the file says what the memory says, or is gone like it. */
async function followMemory(
  { folder, random }: ProjectSyncDeps,
  step: Extract<Step, { kind: "write" | "remove" }>,
  after: ProjectState,
): Promise<string | undefined> {
  const { name, known } = step;
  if (step.kind === "remove")
    return (await removeFile(folder, name, { before: known.file, random })) ? undefined : CHANGED;
  const before = step.isThere ? await readText(folder, name) : undefined;
  if (step.isThere && before?.hash !== known.file) return CHANGED;
  const written = before === undefined ? undefined : parseFact(before.text, name);
  if (before !== undefined && maskSecrets(before.text) !== before.text) {
    return "it holds a secret, which its memory does not: bring them together by hand";
  }
  const text = printFact(factOf(step.node, written), {
    ...(before !== undefined && { before: before.text }),
    ...(known.promoted && { nodeId: step.node.id }),
  });
  if (!(await writeText(folder, name, text, { before: before?.hash, random }))) return CHANGED;
  const pair = await pairNow(folder, name, step.node, known.promoted);
  if (pair !== undefined) after.files[name] = pair;
  return undefined;
}

async function pairNow(
  folder: MemoryFolder,
  name: string,
  node: NodeRecord,
  promoted: boolean,
): Promise<SyncedFile | undefined> {
  const read = await readText(folder, name);
  const fact = read === undefined ? undefined : parseFact(read.text, name);
  return read === undefined || fact === undefined ? undefined : pairOf({ ...read, fact }, node, promoted);
}

function pairOf({ hash, seen, fact }: Read, node: NodeRecord, promoted: boolean): SyncedFile {
  return {
    nodeId: node.id,
    file: hash,
    size: seen.size,
    mtimeMs: seen.mtimeMs,
    node: nodeHash(node),
    promoted,
    name: fact.name,
    hook: fact.description === "" ? (fact.body.split("\n")[0] ?? "") : fact.description,
    importance: node.importance,
    links: linksIn(fact.body),
  };
}

/** The memories that have changed, or whose files have. */
function touchedIn(nodes: Sides["nodes"], before: ProjectState, after: ProjectState): Set<string> {
  const touched = new Set(nodes.keys());
  for (const file of new Set([...Object.keys(before.files), ...Object.keys(after.files)])) {
    const [was, is] = [before.files[file], after.files[file]];
    if (was?.nodeId === is?.nodeId && was?.mtimeMs === is?.mtimeMs) continue;
    for (const pair of [was, is]) if (pair !== undefined) touched.add(pair.nodeId);
  }
  return touched;
}

/** Once nobody has changed anything for a while, memories are reviewed, and the most important ones get files. */
async function tidy(deps: ProjectSyncDeps, after: ProjectState): Promise<Done[]> {
  const { clock, memory, promotion, curation } = deps;
  const nowMs = clock.nowMs();
  if (!curation.isOn) after.curation = nothingCurated();
  if (!curation.isOn || nowMs - after.activeAtMs < promotion.quietMs) return [];
  const about = { memory, curation, nowMs };
  const mustCurate = await needsCuration(about, after);
  const key = `${after.untilUs} ${JSON.stringify(promotion)}`;
  const mustPromote = promotion.isOn && (mustCurate || after.promoted !== key);
  if (!mustCurate && !mustPromote) return [];
  const { nodes } = await memory.changed(0);
  if (mustCurate) after.curation = await curate(about, nodes, after);
  if (!mustPromote) return [];
  const done = await promote(deps, nodes, after);
  after.promoted = key;
  return done;
}

/** Gives the most important memories that have no file one. */
async function promote(
  { folder, promotion, random }: ProjectSyncDeps,
  nodes: Sides["nodes"],
  after: ProjectState,
): Promise<Done[]> {
  const done: Done[] = [];
  for (const node of promotable(nodes, after, promotion)) {
    const name = newFileName(node, new Set(Object.keys(after.files)));
    const text = printFact(factOf(node), { nodeId: node.id });
    if (!(await writeText(folder, name, text, { before: undefined, random }))) continue;
    const pair = await pairNow(folder, name, node, true);
    if (pair === undefined) continue;
    after.files[name] = pair;
    done.push({ file: name, action: "promoted" });
  }
  return done;
}

/**
 * The index has a line for each fact, where there is an index or something of ours to show. Of facts that say the same one has
 * a line, and stale ones have none.
 */
async function updateIndex({ folder, random }: ProjectSyncDeps, { files, curation }: ProjectState): Promise<Done[]> {
  const before = await readText(folder, INDEX_NAME);
  const hasOurs = Object.values(files).some(({ promoted }) => promoted);
  if (before === undefined && !hasOurs) return [];
  const withFile = new Set(Object.values(files).map(({ nodeId }) => nodeId));
  const unlisted = new Set([
    ...curation.review.stale.map(({ id }) => id),
    ...curation.linked.filter(({ dst }) => withFile.has(dst)).map(({ src }) => src),
  ]);
  const entries: IndexEntry[] = Object.entries(files)
    .filter(([, { nodeId }]) => !unlisted.has(nodeId))
    .toSorted(([a, x], [b, y]) => y.importance - x.importance || (a < b ? -1 : 1))
    .map(([file, { name, hook }]) => ({ file, name, hook }));
  const text = withEntries(before?.text ?? "", entries);
  if (text === (before?.text ?? "")) return [];
  const isWritten = await writeText(folder, INDEX_NAME, text, { before: before?.hash, random });
  return isWritten
    ? [{ file: INDEX_NAME, action: "written" }]
    : [{ file: INDEX_NAME, action: "skipped", reason: CHANGED }];
}
