import type { RecordStore } from "../../catalog/records.ts";
import { textOf } from "../../fabric/job.ts";
import { DISK, fitsOtherwise, MEMORY, nodesWithRoom, type Need, type NodeRoom } from "./room.ts";

/**
 * Why nothing has room for a sandbox, and what takes it. Its owner is told what is short, and how much of that is the
 * owner's own; the log of the server says whose the rest is.
 */
export type RoomReport = {
  /** For the owner. */
  why: string;
  /** For operators: who takes most of each node in question. */
  takers: readonly NodeTakers[];
};

export type NodeTakers = {
  node: string;
  diskMb: { all: number; taken: number };
  memoryMb: { all: number; taken: number };
  /** `owner: MiB`, the largest first. */
  volumes: readonly string[];
  disks: readonly string[];
};

const SHOWN = 5;

const RESOURCES = [
  ["cpuMillis", "CPU (1/1000)"],
  ["memoryMb", "MiB of memory"],
  ["diskMb", "MiB of disk"],
  ["sandboxes", "sandbox"],
] as const;
type Resource = (typeof RESOURCES)[number][0];

export async function roomReport(records: Pick<RecordStore, "rows">, tenant: string, need: Need): Promise<RoomReport> {
  const all = await nodesWithRoom(records);
  const nodes = all.filter((node) => fitsOtherwise(node, need));
  if (nodes.length === 0) return { why: whyNone(all, need), takers: [] };
  const amounts = { ...need, sandboxes: 1 };
  const short = RESOURCES.filter(([name]) =>
    nodes.every(({ capacity, taken }) => capacity[name] - taken[name] < amounts[name]),
  );
  const needs = short.map(([name, unit]) => `${amounts[name]} ${unit}`).join(", ");
  const what =
    short.length === 0 ? "no single node has all that it needs" : `it needs ${needs}, which no node has free`;
  const own = await ownShares(records, { tenant, nodes, names: new Set(short.map(([name]) => name)) });
  return { why: [what, ...own].join("; "), takers: await takersOf(records, nodes) };
}

function whyNone(all: readonly NodeRoom[], { nodeId, image, labels }: Need): string {
  if (all.length === 0) return "no node takes sandboxes at the moment";
  if (nodeId !== undefined && !all.some(({ id }) => id === nodeId)) {
    return "the node that has its volumes takes no sandboxes at the moment";
  }
  const wanted = [
    ...(nodeId === undefined ? [] : ["its volumes"]),
    ...(image === undefined ? [] : [`the image ${image}`]),
    ...Object.entries(labels).map(([name, value]) => `the label ${name}=${value}`),
  ];
  return `no node has ${wanted.join(" and ")}`;
}

type Own = { tenant: string; nodes: readonly NodeRoom[]; names: ReadonlySet<Resource> };

/** What the owner could free of what is short. */
async function ownShares(records: Pick<RecordStore, "rows">, { tenant, nodes, names }: Own): Promise<string[]> {
  const ids = nodes.map(({ id }) => id);
  const among = `tenant = ? AND node_id IN (${ids.map(() => "?").join(", ")})`;
  const [row] = await records.rows(
    `SELECT count(*) AS sandboxes, coalesce(sum(${MEMORY}), 0) AS memory_mb, coalesce(sum(${DISK}), 0) AS disk_mb ` +
      `FROM sandboxes WHERE ${among}`,
    [tenant, ...ids],
  );
  const count = Number(row?.["sandboxes"]);
  const shares: string[] = [];
  if (names.has("sandboxes")) shares.push(`${count} of those there are yours`);
  if (names.has("memoryMb"))
    shares.push(`your ${count} sandboxes there take ${Number(row?.["memory_mb"])} MiB of memory`);
  if (!names.has("diskMb")) return shares;
  const volumes = await records.rows(
    `SELECT name, size_mb FROM sandbox_volumes WHERE ${among} ORDER BY size_mb DESC, name`,
    [tenant, ...ids],
  );
  const volumesMb = volumes.reduce((sum, volume) => sum + Number(volume["size_mb"]), 0);
  const largest = volumes.slice(0, SHOWN).map((volume) => `${textOf(volume, "name")} ${Number(volume["size_mb"])}`);
  const named = largest.length === 0 ? "" : ` (${largest.join(", ")}${volumes.length > SHOWN ? ", …" : ""})`;
  shares.push(
    `disks of your sandboxes there take ${Number(row?.["disk_mb"])} MiB, your volumes ${volumesMb} MiB${named}`,
  );
  return shares;
}

async function takersOf(records: Pick<RecordStore, "rows">, nodes: readonly NodeRoom[]): Promise<NodeTakers[]> {
  const shown = nodes.slice(0, SHOWN);
  const ids = shown.map(({ id }) => id);
  const among = `node_id IN (${ids.map(() => "?").join(", ")}) GROUP BY node_id, tenant ORDER BY mb DESC`;
  const volumes = await records.rows(
    `SELECT node_id, tenant, sum(size_mb) AS mb FROM sandbox_volumes WHERE ${among}`,
    ids,
  );
  const disks = await records.rows(`SELECT node_id, tenant, sum(${DISK}) AS mb FROM sandboxes WHERE ${among}`, ids);
  return shown.map(({ id, capacity, taken }) => {
    const largest = (rows: typeof volumes) =>
      rows
        .filter((row) => row["node_id"] === id)
        .slice(0, SHOWN)
        .map((row) => `${textOf(row, "tenant")}: ${Number(row["mb"])}`);
    return {
      node: id,
      diskMb: { all: capacity.diskMb, taken: taken.diskMb },
      memoryMb: { all: capacity.memoryMb, taken: taken.memoryMb },
      volumes: largest(volumes),
      disks: largest(disks),
    };
  });
}
