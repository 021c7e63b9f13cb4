import type { Plan, PlannedRole } from "../model/plan.ts";
import { GIB, MIB } from "../units.ts";
import type { Workload } from "../workload/workload.ts";

/** What the modules of `terraform/` take as it is: the content of a `capacity.auto.tfvars.json`. */
export type Tfvars = {
  zone_count: number;
  nat_per_zone: boolean;
  ingest_mode: "sync" | "staged";
  catalog: { instance_class: string; storage_gib: number };
  roles: Record<string, TfRole>;
  sandbox_nodes?: Record<string, { instance_type: string; disk_gib: number }>;
};

type TfRole = {
  cpu: number;
  memory_mib: number;
  min: number;
  max: number;
  target_cpu: number;
  disk_gib: number;
  env?: Record<string, string>;
};

/** What Fargate has: memory in GiB by cores, from, to, in steps of. */
const FARGATE: readonly { cores: number; from: number; to: number; step: number }[] = [
  { cores: 1, from: 2, to: 8, step: 1 },
  { cores: 2, from: 4, to: 16, step: 1 },
  { cores: 4, from: 8, to: 30, step: 1 },
  { cores: 8, from: 16, to: 60, step: 4 },
  { cores: 16, from: 32, to: 120, step: 8 },
];
const FARGATE_DISK = { least: 21, most: 200 };
/** Service discovery gives no more addresses: see `roles` in `terraform/aws/variables.tf`. */
const MAX_NODES = 8;
const SCALED = new Set(["edge", "query", "ingest", "worker"]);
/** The disk of a query node beside its cache. */
const BESIDE_CACHE_GIB = 21;

const CLASSES = [
  { cores: 2, name: "large" },
  { cores: 4, name: "xlarge" },
  { cores: 8, name: "2xlarge" },
  { cores: 16, name: "4xlarge" },
  { cores: 32, name: "8xlarge" },
  { cores: 48, name: "12xlarge" },
  { cores: 64, name: "16xlarge" },
];
const LEAST_CATALOG_GIB = 50;
/** Indexes that grow before vacuum, and the log that a standby has not yet taken. */
const CATALOG_MARGIN = 2;

/** Throws a sentence where the plan does not fit what the modules can make. */
export function tfvarsOf(plan: Plan, { deployment }: Workload): Tfvars {
  if (plan.mode === "single" || plan.postgres === null)
    throw new Error("one process needs no Terraform; take mode sync or staged in the workload");
  const problem = plan.unreached.find((sentence) => sentence.includes("busy cores"));
  if (problem !== undefined) throw new Error(`there is nothing to write for Terraform: ${problem}`);
  const roles = plan.roles.filter(({ role }) => role !== "sandbox");
  const sandboxes = plan.roles.find(({ role }) => role === "sandbox");
  const catalogGib = Math.ceil((CATALOG_MARGIN * (plan.storage.catalogBytes ?? 0)) / GIB);
  return {
    zone_count: Math.min(3, Math.max(2, deployment.zones)),
    nat_per_zone: deployment.survive === "zone",
    ingest_mode: plan.mode,
    catalog: {
      instance_class: `db.m7g.${classOf(plan.postgres.cores, "PostgreSQL")}`,
      storage_gib: Math.max(LEAST_CATALOG_GIB, catalogGib),
    },
    roles: Object.fromEntries(roles.map((each) => [each.role, tfRoleOf(each)])),
    ...(sandboxes === undefined ? {} : { sandbox_nodes: sandboxNodesOf(sandboxes) }),
  };
}

function tfRoleOf(planned: PlannedRole): TfRole {
  const { role, nodes } = planned;
  if (nodes > MAX_NODES)
    throw new Error(`${role} needs ${nodes} nodes and the modules take ${MAX_NODES}; raise max_cores in the workload`);
  const { cores, memoryGib } = fargateSize(planned);
  const most = SCALED.has(role) ? Math.min(MAX_NODES, Math.max(nodes + 1, planned.p90?.nodes ?? 0)) : nodes;
  const diskGib = Math.min(FARGATE_DISK.most, Math.max(FARGATE_DISK.least, Math.ceil(planned.diskBytes / GIB)));
  const cacheGib = diskGib - BESIDE_CACHE_GIB;
  return {
    cpu: cores * 1_024,
    memory_mib: memoryGib * (GIB / MIB),
    min: nodes,
    max: most,
    target_cpu: 60,
    disk_gib: diskGib,
    ...(role === "query" && cacheGib > 0 ? { env: { ENGINE_QUERY_CACHE_BYTES: `${cacheGib}GiB` } } : {}),
  };
}

/** The smallest that has the cores and the memory. */
function fargateSize({ role, cores, memoryBytes }: PlannedRole): { cores: number; memoryGib: number } {
  const wanted = memoryBytes / GIB;
  const fits = FARGATE.find((each) => each.cores >= cores && each.to >= wanted);
  if (fits === undefined)
    throw new Error(
      `${role} needs ${cores} cores and ${Math.ceil(wanted)} GiB in one node, and Fargate has 16 and 120 at most; lower max_cores in the workload`,
    );
  const { from, step } = fits;
  return { cores: fits.cores, memoryGib: from + step * Math.max(0, Math.ceil((wanted - from) / step)) };
}

function classOf(cores: number, what: string): string {
  const fits = CLASSES.find((each) => each.cores >= cores);
  if (fits === undefined) throw new Error(`${what} needs ${cores} cores, and no machine of the modules has so many`);
  return fits.name;
}

function sandboxNodesOf({ nodes, cores, diskBytes }: PlannedRole): NonNullable<Tfvars["sandbox_nodes"]> {
  const node = { instance_type: `m7i.${classOf(cores, "a sandbox node")}`, disk_gib: Math.ceil(diskBytes / GIB) };
  return Object.fromEntries(Array.from({ length: nodes }, (_, i) => [`sandbox-${i + 1}`, node]));
}
