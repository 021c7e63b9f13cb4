import type { Passwords } from "../src/auth/passwords.ts";
import type { NewUser, Users } from "../src/auth/users.ts";
import { isLoopback } from "../src/config/auth-kinds.ts";
import { formatAddress, type Address } from "../src/config/kinds.ts";
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

/** The name of the configured user when the password of the configuration is one that everybody knows, and still good. */
export async function weakUserOf(
  configured: NewUser | undefined,
  { users, passwords }: { users: Users; passwords: Passwords },
): Promise<string | undefined> {
  if (configured === undefined) return undefined;
  const { name, password } = configured;
  const isKnown = KNOWN_PASSWORDS.has(password.toLowerCase()) || password.toLowerCase() === name.toLowerCase();
  if (!isKnown) return undefined;
  const found = await users.find(name);
  if (found?.passwordHash === undefined) return undefined;
  return (await passwords.verify(found.passwordHash, password)) ? found.user.name : undefined;
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
  if (isLoopback(listen.host)) {
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

/** Says it in the log, and where others could come in also so that nobody misses it, whatever is logged. */
export function warnOf(exposure: Exposure, listen: Address, out: { log: Log; write: (text: string) => void }): void {
  const warning = warningOf(exposure, listen);
  if (warning === undefined) return;
  const { isOpen, lines } = warning;
  out.log.warn({ listen: formatAddress(listen) }, lines.join(" ").replace(/^WARNING: /, ""));
  if (isOpen) out.write(`\n${[RULE, ...lines, RULE].join("\n")}\n\n`);
}
