import { rolesOf, type RoleName } from "../src/config/kinds.ts";
import type { LoadedConfig } from "../src/config/load.ts";
import { StartupError } from "../src/core/errors.ts";

/** Who answers a group of routes of this process. */
export type Answerer = "here" | "peers" | "nobody";

/** What one process does: the sum of its roles. */
export type Plan = {
  roles: readonly RoleName[];
  /** Queries and reads of the catalog. */
  query: Answerer;
  /** Ingest and the administration of tables. */
  ingest: Answerer;
  /** Duties in the background. */
  background: { committer: boolean; worker: boolean; compaction: boolean };
  /** Sentences for the log: settings without effect. */
  notes: readonly string[];
};

type Loaded = Pick<LoadedConfig, "config" | "origins">;

/** @throws StartupError (exit code 2) for roles of a cluster on a catalog of this machine. */
export function planOf(loaded: Loaded): Plan {
  const { config } = loaded;
  const roles = rolesOf(config.roles);
  const all = roles.has("all_in_one");
  const plan = {
    roles: [...roles],
    query: answererOf(roles, "query", config.queryPeers),
    ingest: answererOf(roles, "ingest", config.ingestPeers),
    background: {
      committer: all || roles.has("committer"),
      worker: all || roles.has("worker"),
      compaction: all || roles.has("compaction"),
    },
  };
  refuseSharingAlone(plan, loaded);
  return { ...plan, notes: uselessPeers(plan, loaded) };
}

/** Whether the process works on the catalog and the store itself. */
export function needsStorage({ query, ingest, background }: Plan): boolean {
  return query === "here" || ingest === "here" || Object.values(background).some(Boolean);
}

/** A process that has the role of a route answers itself; an edge does so for what it has no peers for. */
function answererOf(roles: ReadonlySet<RoleName>, own: RoleName, peers: readonly string[] | undefined): Answerer {
  if (roles.has("all_in_one") || roles.has(own)) return "here";
  if (!roles.has("edge")) return "nobody";
  return peers === undefined ? "here" : "peers";
}

function refuseSharingAlone(plan: Omit<Plan, "notes">, { config, origins }: Loaded): void {
  const { roles, query, ingest } = plan;
  if (config.catalogUrl.kind !== "sqlite" || roles.includes("all_in_one")) return;
  const onlyForwards = roles.every((role) => role === "edge") && query === "peers" && ingest === "peers";
  if (onlyForwards) return;
  const missing = roles.includes("edge") ? " (an edge needs none when it has peers for queries and for ingest)" : "";
  throw new StartupError(
    `${origins.roles} is ${roles.join(",")}, a part of a cluster, whose servers share a PostgreSQL catalog${missing}; ` +
      `set ENGINE_CATALOG_URL to it, or unset ENGINE_ROLES to run everything on ${config.catalogUrl.path}`,
    2,
  );
}

function uselessPeers({ query, ingest }: Pick<Plan, "query" | "ingest">, { config, origins }: Loaded): string[] {
  const useless = [
    ...(config.queryPeers !== undefined && query !== "peers" ? [origins.queryPeers] : []),
    ...(config.ingestPeers !== undefined && ingest !== "peers" ? [origins.ingestPeers] : []),
  ];
  return useless.map((name) => `${name} has no effect: this server answers such requests itself, or not at all`);
}
