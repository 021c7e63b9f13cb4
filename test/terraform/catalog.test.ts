import { X509Certificate, randomBytes } from "node:crypto";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { basename, delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPostgresPrograms } from "../../src/db/postgres/server-programs.ts";
import { sharedTestServer, type TestDatabases } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { REPOSITORY } from "./terraform.test-kit.ts";

/** What the module of the catalog brings along: certificate authorities, and the script that makes the engine's user. */

const MODULE = join(REPOSITORY, "terraform/modules/catalog");

test("each certificate authority is the root of RDS in the region that its name says", () => {
  const files = globSync(join(MODULE, "authorities/*.pem"));
  expect(files.length).toBeGreaterThan(20);
  for (const file of files) {
    const certificate = new X509Certificate(readFileSync(file));
    const region = basename(file, ".pem");
    expect(certificate.subject).toContain(`CN=Amazon RDS ${region} Root CA RSA2048 G1`);
    expect(certificate.ca && certificate.verify(certificate.publicKey)).toBe(true);
    expect(Date.parse(certificate.validTo)).toBeGreaterThan(Date.parse("2050-01-01"));
  }
});

describe.skipIf(lacks("PostgreSQL"))("catalog-user.sh", () => {
  // Roles belong to the server, which other test files use too.
  const user = `engine_${randomBytes(4).toString("hex")}`;
  let server: TestDatabases;
  let url = "";
  beforeAll(async () => {
    server = await sharedTestServer();
    url = await server.createDatabase();
  });
  afterAll(async () => {
    await server.query(url, `DROP OWNED BY ${user}`);
    await server.query(url, `DROP ROLE ${user}`);
    await server.stop();
  });

  /** One round, without a terminal, as in a container. */
  async function reconcile(password: string): Promise<{ code: unknown; output: string }> {
    const { hostname, port, username, pathname } = new URL(url);
    const child = spawn("/bin/sh", [join(MODULE, "catalog-user.sh"), "once"], {
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: [findPostgresPrograms()?.folder, process.env["PATH"]].join(delimiter),
        PGHOST: hostname,
        PGPORT: port,
        PGUSER: username,
        PGDATABASE: pathname.slice(1),
        ENGINE_USER: user,
        ENGINE_PASSWORD: password,
      },
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data: Buffer) => (output += data.toString()));
    const [code] = (await once(child, "close")) as [unknown];
    return { code, output };
  }
  const hash = async () => {
    const [row] = await server.query(url, `SELECT rolpassword FROM pg_authid WHERE rolname = '${user}'`);
    return String(row?.["rolpassword"]);
  };

  test("makes a user that may make its schema and is no administrator, and follows the secret", async () => {
    expect(await reconcile("it's; DROP ROLE x --")).toEqual({ code: 0, output: "" });
    const first = await hash();
    expect(first).toMatch(/^SCRAM-SHA-256\$/);
    const again = await reconcile("another-password");
    expect(again).toEqual({ code: 0, output: "" });
    expect(await hash()).not.toBe(first);
    const [rights] = await server.query(
      url,
      `SELECT rolsuper OR rolcreaterole OR rolcreatedb AS administers,
        has_database_privilege('${user}', current_database(), 'CREATE') AS makes_schemas,
        has_database_privilege('public', current_database(), 'CONNECT') AS is_open
        FROM pg_roles WHERE rolname = '${user}'`,
    );
    expect(rights).toMatchObject({ administers: false, makes_schemas: true, is_open: false });
  });
});
