import type { Passwords } from "../src/auth/passwords.ts";
import type { NewUser, Users } from "../src/auth/users.ts";
import { isLoopback } from "../src/auth/option-kinds.ts";
import { formatAddress, type Address } from "../src/config/kinds.ts";
import type { OptionValues } from "../src/config/option.ts";
import type { AUTH_OPTIONS } from "../src/auth/options.ts";
import { StartupError } from "../src/core/errors.ts";
import type { Log } from "../src/core/log.ts";
import type { Plan } from "./plan.ts";

/** What is said at the start about a server that lets in more than its operator may think. */
export type Exposure = {
  /** Whether callers must show a token. */
  tokensAreAsked: boolean;
  /** A user whose password everybody knows. */
  weakUser: string | undefined;
  /** Whether there is something to read or to change here, and whether it is all at peers. */
  answers: "data" | "what peers answer" | "nothing";
};

/** Those that are tried first, wherever there is a server. */
const KNOWN_PASSWORDS: ReadonlySet<string> = new Set([
  "admin",
  "administrator",
  "root",
  "engine",
  "password",
  "passw0rd",
  "changeme",
  "secret",
  "default",
  "123456",
  "12345678",
  "123456789",
  "qwerty",
  "letmein",
  "welcome",
  "admin123",
  "test",
]);

/** Whether other machines can reach an address to listen on. */
export function isReachable({ host }: Address): boolean {
  return !isLoopback(host);
}

export function isKnownPassword({ name, password }: Pick<NewUser, "name" | "password">): boolean {
  return KNOWN_PASSWORDS.has(password.toLowerCase()) || password.toLowerCase() === name.toLowerCase();
}

/** The first of these users who signs in with a password that everybody knows. */
export async function weakUserOf(
  candidates: readonly NewUser[],
  { users, passwords }: { users: Users; passwords: Passwords },
): Promise<string | undefined> {
  for (const { name, password } of candidates.filter(isKnownPassword)) {
    const found = await users.find(name);
    if (found?.passwordHash === undefined) continue;
    if (await passwords.verify(found.passwordHash, password)) return found.user.name;
  }
  return undefined;
}

/** Throws `StartupError` (exit code 2): the engine of one machine lets nobody in from others by such a password. */
export function refuseWeakUser(weakUser: string, listen: Address): void {
  if (!isReachable(listen)) return;
  throw new StartupError(
    `the password of the user ${weakUser} is one that everybody knows, and other machines can reach ` +
      `${formatAddress(listen)}: start on 127.0.0.1 and change it with \`engine user passwd ${weakUser}\``,
    2,
  );
}

/** A token of that many characters can be guessed by nobody, if it is random at all. */
const MIN_TOKEN_CHARS = 16;

type TokenOptions = Pick<
  OptionValues<typeof AUTH_OPTIONS>,
  "authBackend" | "authTokens" | "securityApiKeys" | "internalBearer"
>;

/** Warns of tokens of the configuration that can be guessed; throws `StartupError` (exit code 2) where others could try. */
export function checkTokens(config: TokenOptions, listen: Address, log: Log): void {
  const { authTokens, securityApiKeys, internalBearer } = config;
  const short = [
    ["ENGINE_AUTH_TOKENS", config.authBackend === "env" ? authTokens.map(({ token }) => token) : []],
    ["ENGINE_SECURITY_API_KEYS", securityApiKeys.map(({ token }) => token)],
    ["ENGINE_INTERNAL_BEARER", internalBearer === undefined ? [] : [internalBearer]],
  ] as const;
  const names = short.flatMap(([name, tokens]) => (tokens.some(isShort) ? [name] : []));
  if (names.length === 0) return;
  const what = `a token in ${names.join(" and ")} is shorter than ${MIN_TOKEN_CHARS} characters and can be guessed`;
  const remedy = "take a longer one (openssl rand -hex 24)";
  if (!isReachable(listen)) {
    log.warn(`${what}: ${remedy}`);
    return;
  }
  const reach = `other machines can reach ${formatAddress(listen)}`;
  throw new StartupError(`${what}, and ${reach}: ${remedy}, or listen on 127.0.0.1`, 2);
}

function isShort(token: string): boolean {
  return token.length < MIN_TOKEN_CHARS;
}

export function answersOf({ query, ingest }: Plan): Exposure["answers"] {
  if (query === "here" || ingest === "here") return "data";
  return query === "peers" || ingest === "peers" ? "what peers answer" : "nothing";
}

/** What there is to say about a server that listens there; undefined when there is nothing. */
export function warningOf(exposure: Exposure, listen: Address): { isOpen: boolean; lines: string[] } | undefined {
  const { tokensAreAsked, weakUser, answers } = exposure;
  if (answers === "nothing" || (tokensAreAsked && weakUser === undefined)) return undefined;
  const shown = formatAddress(listen);
  if (!isReachable(listen)) {
    const what = tokensAreAsked
      ? `the password of the user ${weakUser} is one that everybody knows`
      : "authentication is off";
    return { isOpen: false, lines: [`${what}: whoever connects to ${shown} on this machine may do everything`] };
  }
  const [what, remedy] = tokensAreAsked
    ? [`the password of the user ${weakUser} is one that everybody knows`, "Change it"]
    : ["authentication is off", "Set ENGINE_AUTH_TOKENS or ENGINE_AUTH_BACKEND"];
  const whoever =
    answers === "data" || tokensAreAsked
      ? "Whoever reaches it may read, change and delete everything."
      : "Whoever reaches it may do everything, unless its peers ask for tokens.";
  const reach = `and other machines can reach ${shown}.`;
  return { isOpen: true, lines: [`WARNING: ${what}, ${reach}`, whoever, `${remedy}, or listen on 127.0.0.1.`] };
}

const RULE = "*".repeat(80);

type Out = { log: Log; write: (text: string) => void };

/** Says it in the log, and where others could come in also so that nobody misses it, whatever is logged. */
export function warnOf(exposure: Exposure, listen: Address, out: Out): void {
  const warning = warningOf(exposure, listen);
  if (warning !== undefined) announce(warning.lines, listen, out, warning.isOpen);
}

/** Says lines of a warning in the log, and around the log where nobody is to miss it. */
export function announce(lines: readonly string[], listen: Address, { log, write }: Out, isLoud: boolean): void {
  log.warn({ listen: formatAddress(listen) }, lines.join(" ").replace(/^WARNING: /, ""));
  if (isLoud) write(`\n${[RULE, ...lines, RULE].join("\n")}\n\n`);
}
