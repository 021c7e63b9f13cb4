import type { ApiTokens } from "../auth/api-tokens.ts";
import type { AuditLog } from "../auth/audit.ts";
import type { Ownership } from "../auth/ownership.ts";
import type { Sessions } from "../auth/sessions.ts";
import type { SignIn } from "../auth/sign-in.ts";
import type { Users } from "../auth/users.ts";
import type { Clock } from "../core/clock.ts";
import type { AuthConfig } from "./auth-config.ts";

/** What signing in, and the administration of users and tokens, work with. */
export type AccessDeps = {
  signIn: SignIn;
  sessions: Sessions;
  users: Users;
  apiTokens: ApiTokens;
  audit: AuditLog;
  ownership: Ownership;
  authConfig: AuthConfig;
  clock: Clock;
};
