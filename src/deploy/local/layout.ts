import { createServer } from "node:net";
import { once } from "node:events";
import { z } from "zod";
import type { Random } from "../../core/random.ts";
import { CliError } from "../../client/failure.ts";

/** What is chosen once for a local deployment, and kept: ports and secrets. */
export const LAYOUT_FILE = "local/layout.json";
export const SECRETS_FILE = "local/secrets.json";

/**
 * How many processes of each role, and their rank: edges begin when what they forward to serves, for one that meets a
 * peer that does not would pass it over for some seconds, and refuse requests though `up` has ended.
 */
export const ROLES = {
  query: { count: 2, rank: 1 },
  ingest: { count: 2, rank: 1 },
  committer: { count: 1, rank: 1 },
  compaction: { count: 1, rank: 1 },
  worker: { count: 1, rank: 1 },
  edge: { count: 2, rank: 2 },
} as const;
export type Role = keyof typeof ROLES;

/** One server of a cluster, `<role>-<number>`. */
export type Member = { name: string; role: Role };

/** By rank: `ROLES` is. */
export function membersOf(counts: Readonly<Partial<Record<Role, number>>>): Member[] {
  return Object.entries(ROLES).flatMap(([name, { count }]) => {
    const role = name as Role;
    return Array.from({ length: counts[role] ?? count }, (_, i) => ({ name: `${role}-${i + 1}`, role }));
  });
}

export const MEMBERS: readonly Member[] = membersOf({});

const PORT_NAMES = ["postgres", ...MEMBERS.map(({ name }) => name)];

/** Below the range from which systems take ports of outgoing connections. */
const PORTS = { first: 20_000, end: 32_000 };
const MOST_PROBES = 2_000;

export const layoutSchema = z.strictObject({
  format: z.literal(1),
  ports: z
    .record(z.string(), z.int().min(1).max(65_535))
    .refine((ports) => PORT_NAMES.every((name) => Object.hasOwn(ports, name)), "a process has no port"),
});
export type Layout = z.infer<typeof layoutSchema>;

export const secretsSchema = z.strictObject({
  format: z.literal(1),
  adminToken: z.string().min(20),
  isTokenShown: z.boolean(),
  postgresPassword: z.string().min(20),
  /** Seals stored credentials: ENGINE_SECRET_KEY. */
  secretKey: z.string().min(20),
});
export type Secrets = z.infer<typeof secretsSchema>;

export function makeSecrets(random: Random): Secrets {
  const bytes = (encoding: "base64url" | "base64") => Buffer.from(random.fill(new Uint8Array(32))).toString(encoding);
  return {
    format: 1,
    adminToken: bytes("base64url"),
    isTokenShown: false,
    postgresPassword: bytes("base64url"),
    secretKey: bytes("base64"),
  };
}

/** @throws CliError where no ports are free */
export async function chooseLayout(random: Random): Promise<Layout> {
  const span = PORTS.end - PORTS.first;
  const start = Math.floor(random.next() * span);
  const ports: Record<string, number> = {};
  const names = [...PORT_NAMES];
  for (let i = 0; i < MOST_PROBES && names.length > 0; i++) {
    const port = PORTS.first + ((start + i) % span);
    if (!(await isFree(port))) continue;
    const name = names.shift();
    if (name !== undefined) ports[name] = port;
  }
  if (names.length === 0) return { format: 1, ports };
  throw new CliError(`fewer than ${PORT_NAMES.length} ports of 127.0.0.1 are free from ${PORTS.first} to ${PORTS.end}`);
}

export async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch {
    return false;
  }
  server.close();
  await once(server, "close");
  return true;
}
