import type { AuditLog } from "../../../auth/audit.ts";
import type { RecordStore } from "../../../catalog/records.ts";
import type { IdSource } from "../../../core/ids.ts";
import type { Log } from "../../../core/log.ts";
import type { Fabric } from "../../../fabric/fabric.ts";
import type { CredentialDirectory } from "../credentials/directory.ts";
import type { ChangeLimits } from "./change.ts";
import type { EnvSealing } from "./sealed-env.ts";
import type { SandboxMetrics } from "./sandbox-metrics.ts";
import type { VolumeLimits } from "../volumes/volume-quota.ts";
import type { SandboxSignals } from "../signals.ts";

/** What the verbs of sandboxes work with. */
export type SandboxPorts = ChangeLimits & {
  volumeLimits: VolumeLimits;
  log: Log;
  records: RecordStore;
  signals: SandboxSignals;
  fabric: Pick<Fabric, "prepare">;
  audit: AuditLog;
  newId: IdSource;
  metrics: SandboxMetrics;
  /** What sandboxes may use, without the secrets. */
  credentials: CredentialDirectory;
  /** Undefined where the operator set no key. */
  envSealing: EnvSealing | undefined;
};

/** Others may change the same sandbox at the same time: a verb that meets them begins again so often. */
export const ATTEMPTS = 20;
