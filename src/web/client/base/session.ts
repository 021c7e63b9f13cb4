import type { AuthConfig } from "../../../access/auth-config.ts";
import { requestJson } from "./api.ts";
import { ApiError } from "./api-error.ts";
import { clearDrafts, draftsBelongTo } from "./drafts.ts";
import { queryClient } from "./query-client.ts";
import { storage } from "./storage.ts";
import { useQuery } from "./use-query.ts";

export type CallerRole = "read" | "write" | "admin";

/** Who the server takes this browser for. */
export type Caller = { subject: string; kind: string; role: CallerRole; databases: string[] | null };

/** Another way to sign in: an identity provider or an issuer. */
export type SignInWay = AuthConfig["ways"][number];

export type SignInConfig = AuthConfig;

/** `caller` is undefined where one has to sign in first. */
export type Session = { config: SignInConfig; caller: Caller | undefined };

const KEY = ["session"];

export async function readSession(signal?: AbortSignal): Promise<Session> {
  const [config, caller] = await Promise.all([
    requestJson<SignInConfig>("/v1/auth/config", { signal, isQuiet: true }),
    readCaller(signal),
  ]);
  if (caller !== undefined) await forgetOthers(caller);
  return { config, caller };
}

async function readCaller(signal: AbortSignal | undefined): Promise<Caller | undefined> {
  try {
    return await requestJson<Caller>("/v1/auth/me", { signal, isQuiet: true });
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return undefined;
    throw error;
  }
}

/** The session of this browser; the shell shows no page before there is one. */
export function useSession() {
  return useQuery<Session>({ key: KEY, read: readSession, staleMs: 60_000 });
}

/** Reads the session again, here and in other tabs of this browser. */
export async function sessionChanged(): Promise<void> {
  channel()?.postMessage(CHANGED);
  await queryClient.invalidateQueries({ queryKey: KEY });
}

/** Is told when another tab has signed in or out. */
export function onSessionElsewhere(listener: () => void): () => void {
  const open = channel();
  if (open === undefined) return () => undefined;
  const onMessage = ({ data }: MessageEvent) => {
    if (data === CHANGED) listener();
  };
  open.addEventListener("message", onMessage);
  return () => open.removeEventListener("message", onMessage);
}

export async function signInWithPassword(username: string, password: string): Promise<void> {
  await requestJson("/v1/auth/web/login", { json: { username, password }, isQuiet: true });
}

export async function signInWithToken(token: string): Promise<void> {
  await requestJson("/v1/auth/web/token", { json: { token }, isQuiet: true });
}

/** Nothing that was read for the one who leaves stays, nor what they typed. */
export async function signOut(): Promise<void> {
  await requestJson("/v1/auth/web/logout", { method: "POST", isQuiet: true });
  await clearDrafts();
  storage.set(LAST_CALLER, undefined);
  lastCaller = undefined;
  draftsBelongTo(undefined);
  forgetAll();
  await sessionChanged();
}

const LAST_CALLER = "caller";
/** Of this tab; the one that the browser keeps is of all its tabs, and outlives them. */
let lastCaller: string | undefined;
const forgets = new Set<() => void>();

/** Has a module drop what it keeps of the caller, once they sign out or another one signs in. */
export function onForget(forget: () => void): void {
  forgets.add(forget);
}

function forgetAll(): void {
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== KEY[0] });
  for (const forget of forgets) forget();
}

export function callerName({ kind, subject }: Caller): string {
  return `${kind} ${subject}`;
}

/** A session may end without a sign-out: what the one before left must not be shown to another one. */
async function forgetOthers(caller: Caller): Promise<void> {
  const name = callerName(caller);
  // What was done before anybody signed in stays with the one who does.
  const isAnother = (last: string | undefined) => last !== undefined && last !== name && !last.startsWith("anonymous ");
  // Another tab may have cleared the drafts already, and have new ones.
  if (isAnother(storage.get(LAST_CALLER))) await clearDrafts();
  if (isAnother(lastCaller)) forgetAll();
  storage.set(LAST_CALLER, name);
  lastCaller = name;
  draftsBelongTo(name);
}

/** Where an issuer's sign-in page is reached; it leads back to `returnTo`, which is below `/ui/`. */
export function startAddress(provider: string, returnTo: string): string {
  return `/v1/auth/web/start?${new URLSearchParams({ provider, return_to: returnTo }).toString()}`;
}

const RANKS: Readonly<Record<CallerRole, number>> = { read: 0, write: 1, admin: 2 };

/** Whether the caller may do what needs the role; false while nobody is known. */
export function useMay(role: CallerRole | undefined): boolean {
  const { data } = useSession();
  if (role === undefined) return true;
  const own = data?.caller?.role;
  return own !== undefined && RANKS[own] >= RANKS[role];
}

const CHANGED = "session-changed";
let opened: BroadcastChannel | undefined;

function channel(): BroadcastChannel | undefined {
  if (typeof BroadcastChannel === "undefined") return undefined;
  return (opened ??= new BroadcastChannel("engine"));
}
