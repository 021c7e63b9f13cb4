import type { ApiTokens } from "../auth/api-tokens.ts";
import type { AuditLog } from "../auth/audit.ts";
import type { Ownership } from "../auth/ownership.ts";
import type { Sessions } from "../auth/sessions.ts";
import type { SignIn } from "../auth/sign-in.ts";
import type { Users } from "../auth/users.ts";
import type { Clock } from "../core/clock.ts";
import type { Random } from "../core/random.ts";
import type { WebSessions } from "../auth/web/web-sessions.ts";
import type { WebSignIn } from "../auth/web/web-sign-in.ts";
import type { AuthConfig } from "./auth-config.ts";

/** What signing in, and the administration of users and tokens, work with. */
export type AccessDeps = {
  signIn: SignIn;
  sessions: Sessions;
  webSessions: WebSessions;
  webSignIn: WebSignIn;
  /** Under which browsers reach this server; undefined where nobody has said so. */
  publicOrigin: string | undefined;
  users: Users;
  apiTokens: ApiTokens;
  audit: AuditLog;
  ownership: Ownership;
  authConfig: AuthConfig;
  clock: Clock;
  random: Random;
};
