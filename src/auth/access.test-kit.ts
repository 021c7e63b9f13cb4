import { openMemoryCatalog } from "../catalog/sqlite/memory.test-kit.ts";
import type { RecordStore } from "../db/records.ts";
import { ManualClock } from "../core/clock.ts";
import { uuidV7Source } from "../core/ids.ts";
import { silentLog } from "../core/log.ts";
import { seededRandom } from "../core/random.ts";
import { ApiTokens } from "./api-tokens.ts";
import { AuditLog, type Origin } from "./audit.ts";
import { createAuthenticator, type Authenticator } from "./authenticator.ts";
import type { Caller } from "./caller.ts";
import { FailureLimit } from "./failure-limit.ts";
import { Passwords } from "./passwords.ts";
import { Sessions } from "./sessions.ts";
import { SignIn } from "./sign-in.ts";
import type { Keyring } from "./sealing/keyring.ts";
import type { StaticBackend } from "./static-tokens.ts";
import { Users } from "./users.ts";
import { WebIssuers } from "./web/issuers.ts";
import { Renewals } from "./web/renewal.ts";
import { WebSessions } from "./web/web-sessions.ts";

/** Users, sessions and tokens over a catalog of its own, with a clock that stands still. */
export type Access = {
  records: RecordStore;
  clock: ManualClock;
  audit: AuditLog;
  users: Users;
  sessions: Sessions;
  signIn: SignIn;
  webSessions: WebSessions;
  apiTokens: ApiTokens;
  /** How often tokens were said to have lost what they granted. */
  revocations: () => number;
  close: () => Promise<void>;
};

export const ACCESS_TTL_MS = 60_000;
export const REFRESH_TTL_MS = 600_000;

export const ADMIN: Caller = { subject: "root", kind: "static", role: "admin", databases: undefined };

/** Asks nobody for a token, and knows none. */
export function openToAll(): Authenticator {
  return createAuthenticator({ isOn: false, backends: [], failures: new FailureLimit({ clock: new ManualClock() }) });
}

export function by(caller: Caller): Origin & { caller: Caller } {
  return { caller, address: "10.0.0.1", requestId: "r-1" };
}

type AccessOptions = {
  staticCallers?: readonly Caller[];
  /** A clock and a catalog of the test's; its own otherwise. */
  clock?: ManualClock;
  records?: RecordStore;
  /** Of those whom browsers sign in with. */
  keyring?: Keyring | undefined;
  issuers?: WebIssuers;
  staticTokens?: readonly StaticBackend[];
};

export async function openAccess(options: AccessOptions = {}): Promise<Access> {
  const clock = options.clock ?? new ManualClock();
  const random = seededRandom(1);
  const newId = uuidV7Source(clock, random);
  const catalog = options.records === undefined ? openMemoryCatalog(clock).catalog : undefined;
  const records = options.records ?? ownRecords(catalog);
  let revocations = 0;
  const onRevoked = () => void revocations++;
  const audit = new AuditLog(records, newId);
  const passwords = new Passwords();
  const common = { records, clock, random, newId, audit, onRevoked, log: silentLog };
  const users = new Users({ ...common, passwords });
  const sessions = new Sessions({ ...common, accessTtlMs: ACCESS_TTL_MS, refreshTtlMs: REFRESH_TTL_MS });
  const apiTokens = new ApiTokens({ ...common, isOn: true, staticCallers: options.staticCallers ?? [] });
  const { keyring, staticTokens = [], issuers = new WebIssuers() } = options;
  const renewals = new Renewals({ ...common, keyring, issuers });
  const webSessions = new WebSessions({
    ...common,
    apiTokens,
    staticTokens,
    issuers,
    renewals,
    idleMs: REFRESH_TTL_MS,
  });
  return {
    records,
    clock,
    audit,
    users,
    sessions,
    webSessions,
    signIn: new SignIn({
      users,
      sessions,
      webSessions,
      passwords,
      audit,
      clock,
    }),
    apiTokens,
    revocations: () => revocations,
    close: async () => {
      await catalog?.close();
    },
  };
}

function ownRecords(catalog: { records: RecordStore } | undefined): RecordStore {
  if (catalog === undefined) throw new Error("there is no catalog");
  return catalog.records;
}
