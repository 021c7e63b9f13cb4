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
import { Users } from "./users.ts";

/** Users, sessions and tokens over a catalog of its own, with a clock that stands still. */
export type Access = {
  records: RecordStore;
  clock: ManualClock;
  audit: AuditLog;
  users: Users;
  sessions: Sessions;
  signIn: SignIn;
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

export async function openAccess(options: { staticCallers?: readonly Caller[] } = {}): Promise<Access> {
  const clock = new ManualClock();
  const random = seededRandom(1);
  const newId = uuidV7Source(clock, random);
  const { catalog } = openMemoryCatalog(clock);
  const { records } = catalog;
  let revocations = 0;
  const onRevoked = () => void revocations++;
  const audit = new AuditLog(records, newId);
  const passwords = new Passwords();
  const common = { records, clock, random, newId, audit, onRevoked, log: silentLog };
  const users = new Users({ ...common, passwords });
  const sessions = new Sessions({ ...common, accessTtlMs: ACCESS_TTL_MS, refreshTtlMs: REFRESH_TTL_MS });
  return {
    records,
    clock,
    audit,
    users,
    sessions,
    signIn: new SignIn({
      users,
      sessions,
      passwords,
      audit,
      clock,
    }),
    apiTokens: new ApiTokens({
      ...common,
      isOn: true,
      staticCallers: options.staticCallers ?? [],
    }),
    revocations: () => revocations,
    close: async () => {
      await catalog.close();
    },
  };
}
