import { AUTH_OPTIONS } from "../src/auth/options.ts";
import { valuesOf } from "../src/config/option.ts";
import type { Origin } from "../src/auth/audit.ts";
import { checkNewPassword } from "../src/auth/passwords.ts";
import type { NewUser, Users } from "../src/auth/users.ts";
import { formatAddress, type Address } from "../src/config/kinds.ts";
import { StartupError } from "../src/core/errors.ts";
import { isKnownPassword, isReachable } from "./exposure.ts";
import type { Parts } from "./parts.ts";

/**
 * The admin of a catalog without users: the operator's (`ENGINE_ADMIN_USER`), or that of the engine of this machine
 * (`ENGINE_LOCAL_USER`). Only the latter has a password without anybody choosing one, `admin`. That is good where it
 * keeps nobody out who is not in already: where only this machine reaches the server, and either no token is asked for
 * or passwords are what the operator has chosen to let in by.
 */
export type FirstUserOptions = { users: Users; isOn: boolean; listen: Address };

const AT_START: Origin = { caller: { subject: "engine", kind: "internal" }, address: "", requestId: "" };

/** Makes that user where there is none. Throws `StartupError` (exit code 2) where a password is missing. */
export async function makeFirstUser(parts: Parts, options: FirstUserOptions): Promise<void> {
  const { users } = options;
  const configured = configuredUser(parts);
  if (configured === undefined || (await users.hasAny())) return;
  const user = parts.isLocal ? await localUser(parts, configured, options) : configured;
  if (user !== undefined && (await users.seed(user, AT_START))) {
    parts.log.info({ user: user.name }, "the first user was made: an admin");
  }
}

/** Users whose passwords the configuration has, or had: those to look at for passwords that everybody knows. */
export function usersOfConfiguration(parts: Parts): NewUser[] {
  const configured = configuredUser(parts);
  // What earlier starts of `engine serve` have made, whatever the configuration says now.
  const first: NewUser = { name: "admin", password: "admin", role: "admin" };
  return [...(configured === undefined ? [] : [configured]), ...(parts.isLocal ? [first] : [])];
}

function configuredUser({ isLocal, ...parts }: Parts): NewUser | undefined {
  const config = valuesOf(AUTH_OPTIONS, parts.config);
  const { adminUser, adminPassword, localUser: name, localPassword: password } = config;
  if (adminUser !== undefined && adminPassword !== undefined) {
    return { name: adminUser, password: adminPassword, role: "admin" };
  }
  return isLocal && config.catalogUrl.kind === "sqlite" ? { name, password, role: "admin" } : undefined;
}

/** The user as `engine serve` makes them; undefined where it makes none. */
async function localUser(
  { config, log, askPassword }: Parts,
  configured: NewUser,
  { isOn, listen }: FirstUserOptions,
): Promise<NewUser | undefined> {
  if (!isKnownPassword(configured)) return configured;
  const lettingInByPassword = !isOn || valuesOf(AUTH_OPTIONS, config).authBackend === "session";
  if (!lettingInByPassword) {
    const why = "tokens let callers in, and everybody knows the password in ENGINE_LOCAL_PASSWORD";
    log.info({ user: configured.name }, `the first user was not made: ${why}`);
    return undefined;
  }
  if (!isReachable(listen)) return configured;
  const reach = `other machines can reach ${formatAddress(listen)}`;
  const why = `${reach}, and the first user, ${configured.name}, has no password but one that everybody knows`;
  if (askPassword === undefined) {
    throw new StartupError(`${why}: set ENGINE_LOCAL_PASSWORD to one of your own, or listen on 127.0.0.1`, 2);
  }
  const chosen = { ...configured, password: await askPassword(`${why}.`) };
  checkNewPassword(chosen.password);
  if (isKnownPassword(chosen)) throw new StartupError("everybody knows that password: choose another one", 2);
  return chosen;
}
