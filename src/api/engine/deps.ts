import type { ApiTokens } from "../../auth/api-tokens.ts";
import type { AuditLog } from "../../auth/audit.ts";
import type { Authenticator } from "../../auth/authenticator.ts";
import type { Ownership } from "../../auth/ownership.ts";
import type { Sessions } from "../../auth/sessions.ts";
import type { SignIn } from "../../auth/sign-in.ts";
import type { Users } from "../../auth/users.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { RecordStore } from "../../db/records.ts";
import type { Clock } from "../../core/clock.ts";
import type { Metrics } from "../../core/metrics.ts";
import type { Random } from "../../core/random.ts";
import type { Fabric } from "../../fabric/fabric.ts";
import type { JobEvents } from "../../fabric/job-events.ts";
import type { JobLogs } from "../../fabric/job-logs.ts";
import type { Schedules } from "../../fabric/schedules.ts";
import type { Workers } from "../../fabric/workers.ts";
import type { IngestService } from "../../ingest/ingest.ts";
import type { ObjectStore } from "../../io/objectstore/objectstore.ts";
import type { Credentials } from "../../knowledge/credentials/credentials.ts";
import type { JobCredentials } from "../../knowledge/credentials/job-credentials.ts";
import type { DeviceFlows } from "../../knowledge/oauth/device-flows.ts";
import type { OAuthFlows } from "../../knowledge/oauth/flows.ts";
import type { OAuthTokens } from "../../knowledge/oauth/tokens.ts";
import type { QueryService } from "../../query/query.ts";
import type { AuthConfig } from "./schemas.ts";

/** What the routes about the process itself work with. */
export type ServiceDeps = {
  metrics: Metrics;
  authenticator: Authenticator;
  version: string;
  /** How query processes are kept in, where there are any. */
  queryConfinement?: string | undefined;
  /** Whether `/health` says that the server is about to stop. */
  isDraining: () => boolean;
};

/** What queries, and reads of the catalog, work with. */
export type QueryDeps = {
  query: QueryService;
  catalog: Catalog;
  clock: Clock;
  schemaCacheTtlMs: number;
};

/** What ingest, and the administration of tables, work with. */
export type IngestDeps = {
  ingest: IngestService;
  catalog: Catalog;
  store: ObjectStore;
};

/** What signing in, and the administration of users and tokens, work with. */
export type AccessDeps = ConnectionDeps & {
  signIn: SignIn;
  sessions: Sessions;
  users: Users;
  apiTokens: ApiTokens;
  audit: AuditLog;
  ownership: Ownership;
  authConfig: AuthConfig;
  clock: Clock;
};

/** What credentials work with. */
export type CredentialDeps = { credentials: Credentials };

/** What connecting accounts works with. */
export type OAuthDeps = {
  oauth: OAuthFlows;
  /** Where the page at the end leads back to; its window, and no other, is told of the result. */
  oauthReturnBase: string;
  random: Random;
};

/** What connecting the accounts of sandboxes works with. */
export type ConnectionDeps = CredentialDeps &
  OAuthDeps & {
    devices: DeviceFlows;
    tokens: OAuthTokens;
    /** Names of the providers that the operator has described. */
    listed: ReadonlySet<string>;
    /** Where callers may have browsers sent back to, besides the server's own callback. */
    redirectUris: readonly string[];
  };

/** What dropping tables and deleting rows work with. */
export type DeletionDeps = Pick<QueryDeps, "query" | "catalog"> &
  Pick<FabricDeps, "fabric" | "audit"> & { records: RecordStore };

/** What exports work with. */
export type ExportDeps = Pick<FabricDeps, "fabric" | "clock"> & Pick<IngestDeps, "catalog" | "store">;

/** What workers, jobs and schedules work with. */
export type FabricDeps = CredentialDeps & {
  /** For those who hold jobs. */
  secrets: JobCredentials;
  fabric: Fabric;
  workers: Workers;
  logs: JobLogs;
  jobEvents: JobEvents;
  schedules: Schedules;
  audit: AuditLog;
  clock: Clock;
};
