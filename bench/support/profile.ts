import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Sums V8 CPU profiles (`node --cpu-prof`, one per thread): self time by function and by stage. */
export type ProfileSummary = { totalMs: number; stages: [string, number][]; functions: [string, number][] };

type Node = { id: number; callFrame: { functionName: string; url: string; lineNumber: number }; children?: number[] };
type Profile = { nodes: Node[]; samples: number[]; timeDeltas: number[] };

const IDLE = new Set(["(idle)", "(program)", "(root)", "atomicsWaitLoop"]);

/**
 * `stageOf` names the stage of a source file, or undefined to let the caller's stage count. With `pid` only the threads
 * of that process count.
 */
export function summarizeProfiles(
  folder: string,
  stageOf: (url: string) => string | undefined,
  pid?: number,
): ProfileSummary {
  const stages = new Map<string, number>();
  const functions = new Map<string, number>();
  let totalMs = 0;
  const isWanted = (name: string) =>
    name.endsWith(".cpuprofile") && (pid === undefined || name.split(".")[3] === String(pid));
  for (const file of readdirSync(folder).filter(isWanted)) {
    const profile = JSON.parse(readFileSync(join(folder, file), "utf8")) as Profile;
    for (const { node, selfMs, stage } of selfTimes(profile, stageOf)) {
      if (IDLE.has(node.callFrame.functionName)) continue;
      totalMs += selfMs;
      add(stages, stage, selfMs);
      add(functions, describe(node), selfMs);
    }
  }
  return { totalMs, stages: ranked(stages), functions: ranked(functions) };
}

/** How many functions are shown. */
const TOP = 12;

/** Where the time went, the most first. */
export function printProfile({ totalMs, stages, functions }: ProfileSummary): void {
  const line = ([name, ms]: [string, number]) =>
    `  ${((100 * ms) / totalMs).toFixed(1).padStart(5)} %  ${(ms / 1000).toFixed(2)} s  ${name}`;
  console.log(`${(totalMs / 1000).toFixed(1)} CPU-s in JavaScript threads\nby stage`);
  for (const entry of stages) console.log(line(entry));
  console.log("top functions (self)");
  for (const entry of functions.slice(0, TOP)) console.log(line(entry));
}

function selfTimes(profile: Profile, stageOf: (url: string) => string | undefined) {
  const selfMs = new Map<number, number>();
  profile.samples.forEach((id, i) => add(selfMs, id, (profile.timeDeltas[i] ?? 0) / 1000));
  const byId = new Map(profile.nodes.map((node) => [node.id, node]));
  const stages = new Map<number, string>();
  const visit = (node: Node, inherited: string) => {
    const stage = stageOf(node.callFrame.url) ?? inherited;
    stages.set(node.id, stage);
    for (const child of node.children ?? []) visit(byId.get(child) as Node, stage);
  };
  const root = profile.nodes[0];
  if (root !== undefined) visit(root, "other");
  return profile.nodes.map((node) => ({
    node,
    selfMs: selfMs.get(node.id) ?? 0,
    stage:
      node.callFrame.functionName === "(garbage collector)" ? "garbage collection" : (stages.get(node.id) ?? "other"),
  }));
}

function describe({ callFrame }: Node): string {
  const file = callFrame.url.split("/").slice(-2).join("/");
  return `${callFrame.functionName || "(anonymous)"} ${file === "" ? "(native)" : `${file}:${callFrame.lineNumber + 1}`}`;
}

function add<K>(map: Map<K, number>, key: K, value: number): void {
  map.set(key, (map.get(key) ?? 0) + value);
}

function ranked(map: Map<string, number>): [string, number][] {
  return [...map].toSorted((a, b) => b[1] - a[1]);
}
