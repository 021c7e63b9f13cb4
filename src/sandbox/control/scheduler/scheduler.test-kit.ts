import { specOf } from "../../contract/spec.test-kit.ts";
import { AuditLog, type Origin } from "../../../auth/audit.ts";
import type { Keyring } from "../../../auth/sealing/keyring.ts";
import type { CatalogDatabase } from "../../../catalog/catalog-database.ts";
import type { Clock } from "../../../core/clock.ts";
import { uuidV7Source } from "../../../core/ids.ts";
import { silentLog } from "../../../core/log.ts";
import { createMetrics } from "../../../core/metrics.ts";
import { seededRandom } from "../../../core/random.ts";
import { Fabric } from "../../../fabric/fabric.ts";
import { holdOf, type Hold, type JobOwner } from "../../../fabric/job.ts";
import { JobKinds } from "../../../fabric/kinds.ts";
import type { CredentialDirectory } from "../credentials/directory.ts";
import { noCredentials } from "../credentials/directory.test-kit.ts";
import { imageBuildJobKind } from "../../contract/images/build-job.ts";
import type { NodeCapacity, NodeReport, SandboxBatch } from "../../contract/control-port.ts";
import { SANDBOX_JOB_KIND, sandboxJobKind } from "../../contract/sandbox-job.ts";
import type { SandboxSpec } from "../../contract/spec.ts";
import type { SandboxAction, SandboxState } from "../../contract/states.ts";
import type { Sandbox } from "./sandbox.ts";
import { Sandboxes, type SandboxLimits } from "../sandboxes.ts";

export const LEASE_MS = 30_000;
export const ANN: JobOwner = { subject: "ann", kind: "session", role: "write", databases: undefined };
export const BOB: JobOwner = { subject: "bob", kind: "api_token", role: "write", databases: ["logs"] };
export const ROOT: JobOwner = { subject: "root", kind: "session", role: "admin", databases: undefined };

export const ROOMY: NodeCapacity = { cpuMillis: 64_000, memoryMb: 65_536, diskMb: 655_360, sandboxes: 250 };

const LIMITS: SandboxLimits = {
  maxPerTenant: 100,
  repositories: { hosts: ["git.example"], plainHttp: false },
  providerUrls: { "claude-code": "https://api.claude.example" },
  createsPerMinute: 60_000,
  createBurst: 1_000,
  pendingTimeoutMs: 60_000,
  eventsQuotaBytes: 64 * 1024 * 1024,
  volumes: { perOwner: 100, mbPerOwner: 1_048_576 },
  volumesKeptMs: 30 * 86_400_000,
};

export function originOf(owner: JobOwner): Origin {
  return { caller: owner, address: "192.0.2.1", requestId: "r" };
}

/** A control plane of one process on a catalog, and nodes as they speak to it. */
export type ControlPlane = ReturnType<typeof controlPlaneOn>;

type PlaneOptions = {
  seed?: number;
  limits?: Partial<SandboxLimits>;
  keyring?: Keyring;
  credentials?: CredentialDirectory;
};

export function controlPlaneOn(
  { catalog, clock }: { catalog: Pick<CatalogDatabase, "records" | "signals">; clock: Clock },
  { seed = 1, limits = {}, keyring, credentials = noCredentials }: PlaneOptions = {},
) {
  const random = seededRandom(seed);
  const newId = uuidV7Source(clock, random);
  const { records, signals } = catalog;
  const kinds = new JobKinds([sandboxJobKind(LEASE_MS), imageBuildJobKind(LEASE_MS)]);
  const metrics = createMetrics();
  const shared = { records, signals, clock, newId, log: silentLog };
  const fabric = new Fabric({ ...shared, kinds, random, leaseMs: LEASE_MS });
  const audit = new AuditLog(records, newId);
  const envSealing = keyring === undefined ? undefined : { keyring, random };
  const all = { ...LIMITS, ...limits };
  const sandboxes = new Sandboxes({ ...shared, metrics, fabric, audit, envSealing, credentials, limits: all });
  return {
    records,
    metrics,
    fabric,
    audit,
    sandboxes,
    create: (spec: Partial<SandboxSpec> = {}, owner = ANN): Promise<Sandbox> =>
      sandboxes.create({ spec: specOf(spec), owner, origin: originOf(owner) }),
    act: (id: string, action: SandboxAction, caller = ANN): Promise<Sandbox> =>
      sandboxes.act(id, { action, caller, origin: originOf(caller) }),
    report: (
      nodeId: string,
      more: Partial<
        Pick<NodeReport, "capacity" | "images" | "labels" | "keeps" | "unusedVolumes" | "removedVolumes">
      > = {},
    ) =>
      sandboxes.report(nodeId, {
        name: nodeId,
        runtime: "bubblewrap",
        labels: {},
        images: ["host"],
        capacity: ROOMY,
        bootId: "b",
        ...more,
      }),
    /** The holds that a node gets of what waits for it. */
    claim: async (nodeId: string, max = 10): Promise<Hold[]> => {
      const kindsOf = new Set([SANDBOX_JOB_KIND]);
      const claim = {
        kinds: kindsOf,
        holder: nodeId,
        workerId: nodeId,
        jobsOf: "everybody" as const,
        labels: {},
        max,
        waitMs: 0,
      };
      return (await fabric.claim(claim)).map(holdOf);
    },
    events: async (id: string) => {
      const sql = "SELECT seq, tenant, event_type, data FROM sandbox_events WHERE sandbox_id = ? ORDER BY seq";
      const rows = await records.rows(sql, [id]);
      return rows.map((row) => ({
        seq: Number(row["seq"]),
        tenant: String(row["tenant"]),
        type: String(row["event_type"]),
        data: JSON.parse(String(row["data"])) as Record<string, unknown>,
      }));
    },
  };
}

/** A node that has one sandbox, as it reports. */
export class LeasedBox {
  readonly hold: Hold;
  readonly #plane: ControlPlane;
  #batch = 0;

  constructor(plane: ControlPlane, hold: Hold) {
    this.#plane = plane;
    this.hold = hold;
  }

  desiredState() {
    return this.#plane.sandboxes.desiredState(this.hold);
  }

  history(sessionId: string) {
    return this.#plane.sandboxes.history(this.hold, sessionId);
  }

  record(batch: Partial<SandboxBatch> = {}) {
    return this.#plane.sandboxes.record(this.hold, { number: ++this.#batch, events: [], ...batch });
  }

  say(to: SandboxState, reason?: string) {
    return this.record({ state: { to, ...(reason === undefined ? {} : { reason }) } });
  }
}
