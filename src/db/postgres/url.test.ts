import { expect, test } from "vitest";
import { parsePostgresUrl, showAddress } from "./url.ts";

test("a URL says where the server is", () => {
  expect(parsePostgresUrl("postgres://u%40x:p%2Fw@db.example:6543/eng%20ine?application_name=a%26b")).toEqual({
    host: "db.example",
    port: 6543,
    database: "eng ine",
    user: "u@x",
    password: "p/w",
    tls: { kind: "prefer" },
    applicationName: "a&b",
  });
  expect(parsePostgresUrl("postgresql://u@[::1]/d")).toMatchObject({ host: "::1", port: 5432, password: undefined });
});

test("a folder names a Unix socket, which has no TLS", () => {
  const address = parsePostgresUrl("postgres://u@x/d?host=/var/run/postgresql&sslmode=require");
  expect(address).toMatchObject({ host: "/var/run/postgresql", tls: { kind: "off" } });
  expect(showAddress(address)).toBe("d on /var/run/postgresql");
});

test.for([
  ["disable", { kind: "off" }],
  ["prefer", { kind: "prefer" }],
  ["allow", { kind: "prefer" }],
  ["require", { kind: "options", options: { rejectUnauthorized: false } }],
  ["verify-full", { kind: "options", options: {} }],
] as const)("sslmode=%s", ([mode, tls]) => {
  expect(parsePostgresUrl(`postgres://u@h/d?sslmode=${mode}`).tls).toEqual(tls);
});

test("verify-ca, and require with a root certificate, look at the chain and not at the name", () => {
  const root = new URL(import.meta.url).pathname;
  for (const query of ["sslmode=verify-ca", `sslmode=require&sslrootcert=${root}`, `sslrootcert=${root}`]) {
    const { tls } = parsePostgresUrl(`postgres://u@h/d?${query}`);
    if (tls.kind !== "options") throw new Error("no TLS is asked for");
    expect(tls.options.checkServerIdentity?.("other", {} as never)).toBeUndefined();
    expect(tls.options.rejectUnauthorized).toBeUndefined();
  }
});

test.for([
  ["postgres://u:hunter2@/d", "it is no URL"],
  ["postgres:///d", "it names no host"],
  ["postgres://u:hunter2@h", "it names no database"],
  ["postgres://u:hunter2@h/", "it names no database"],
  ["postgres://u:hunter2@h/d%", "a percent sign in it begins no escape; write %25"],
  ["postgres://u:hunter2@h/d?sslmode=on", 'sslmode is "on"; expected one of disable, allow, prefer'],
  ["postgres://u:hunter2@h/d?search_path=x", 'it has the unknown parameter "search_path"; known are sslmode'],
  ["postgres://u:hunter2@h/d?sslrootcert=/no/such/file", "/no/such/file cannot be read: ENOENT"],
  ["postgres://u:hunter2@h:port/d", "it is no URL"],
])("%s is refused, without its password", ([url = "", problem = ""]) => {
  const error = failureOf(() => parsePostgresUrl(url));
  expect(error).toMatchObject({ name: "StartupError", exitCode: 2 });
  expect(String(error)).toContain(problem);
  expect(String(error)).not.toContain("hunter2");
});

function failureOf(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}
