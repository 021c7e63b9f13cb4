import { join } from "node:path";
import type { AuditLog } from "../src/auth/audit.ts";
import type { Asker } from "../src/auth/owner.ts";
import { valuesOf } from "../src/config/option.ts";
import { EngineError } from "../src/core/errors.ts";
import type { Credentials } from "../src/credentials/credentials.ts";
import type { RowConverter } from "../src/query/contract/engines.ts";
import { RemoteJobs } from "../src/query/engines/remote-jobs.ts";
import { EngineRegistry, type EngineKey, type EngineKeys } from "../src/query/engines/registry.ts";
import { RemoteQueries } from "../src/query/engines/remote-queries.ts";
import { QUERY_OPTIONS } from "../src/query/options.ts";
import type { Parts } from "./parts.ts";
import type { Storage } from "./storage.ts";

/** Query engines of others as one process has them. */
export type Engines = { engines: EngineRegistry; remote: RemoteQueries; remoteJobs: RemoteJobs };

type Secrets = { credentials: Pick<Credentials, "get" | "reveal">; audit: AuditLog };

export function queryEngines(parts: Parts, { records }: Pick<Storage, "records">, secrets: Secrets): EngineRegistry {
  return new EngineRegistry({ ...parts, records, audit: secrets.audit, keys: engineKeys(secrets.credentials) });
}

/** What runs there; `folder` is this one's alone in the process. */
export function enginesWith(
  parts: Parts,
  { records }: Pick<Storage, "records">,
  engines: EngineRegistry,
  { converter, folder }: { converter: () => Promise<RowConverter>; folder: string },
): Engines {
  const { home, queryWallMs: wallMs } = valuesOf(QUERY_OPTIONS, parts.config);
  const remote = new RemoteQueries({ ...parts, engines, converter, wallMs, tempDir: join(home, "tmp", folder) });
  return { engines, remote, remoteJobs: new RemoteJobs(records, remote) };
}

/** Only an admin of all databases gives an engine a credential, and such an admin reaches them all. */
const ADMIN: Asker = { subject: "engine", kind: "internal", role: "admin", databases: undefined };

function engineKeys(credentials: Secrets["credentials"]): EngineKeys {
  return {
    async check(id, caller) {
      const { kind } = await credentials.get(id, caller);
      if (KINDS.has(kind)) return;
      throw new EngineError("bad_request_body", `credential_id: accepted are the kinds ${[...KINDS].join(", ")}`);
    },
    async open(id) {
      const { value } = await credentials.reveal(id, ADMIN);
      const key = keyOf(value);
      if (key !== undefined) return key;
      throw new EngineError("not_configured", `the credential ${id} is of no use to a query engine`);
    },
  };
}

const KINDS: ReadonlySet<string> = new Set(["basic", "pat", "api_key"]);
const AUTHORIZATION = "Authorization";

type Value = Awaited<ReturnType<Credentials["reveal"]>>["value"];

function keyOf(value: Value): EngineKey | undefined {
  switch (value.kind) {
    case "basic": {
      const { username, password } = value;
      const pair = Buffer.from(`${username}:${password}`).toString("base64");
      return { user: username, secret: { header: AUTHORIZATION, value: `Basic ${pair}` } };
    }
    case "pat":
      return { user: value.username, secret: { header: AUTHORIZATION, value: `Bearer ${value.token}` } };
    case "api_key": {
      const { header = AUTHORIZATION, key } = value;
      return { secret: { header, value: header === AUTHORIZATION ? `Bearer ${key}` : key } };
    }
    case "oauth2":
    case "url":
    case "aws_creds":
    case "github_app":
      return undefined;
  }
}
