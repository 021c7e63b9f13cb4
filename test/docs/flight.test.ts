import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findPyarrow, flightAddress } from "../api/flight.test-kit.ts";
import { ingest, ndjson } from "../support/client.ts";
import { cleanEnv, startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** The session of `docs/flight.md`, as typed, by Python's own doctest. */
const { python, isThere } = findPyarrow();
const DOCUMENT = fileURLToPath(new URL("../../docs/flight.md", import.meta.url));

let engine: Engine;
let removeHome: () => Promise<void>;
beforeAll(async () => {
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  engine = await startEngine({ home, env: { ENGINE_SANDBOX_RUNTIME: "off", ENGINE_GRPC_ADDR: "127.0.0.1:0" } });
  const rows = ["login", "login", "logout"].map((label, i) => ({ at: `2026-01-0${1 + i}T09:00:00Z`, label }));
  expect((await ingest(engine.url, "events", ndjson(rows))).status).toBe(200);
}, 120_000);
afterAll(async () => {
  await engine.stop();
  await removeHome();
});

const DOCTEST = `
import doctest, sys
flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
examples = doctest.DocTestParser().get_doctest(sys.stdin.read(), {}, "flight.md", "flight.md", 0)
result = doctest.DocTestRunner(optionflags=flags).run(examples)
print(result.attempted, result.failed)
sys.exit(1 if result.failed else 0)
`;

test.skipIf(!isThere)("the session of the document runs as it is typed", () => {
  const session = /```python\n([^]*?)```/.exec(readFileSync(DOCUMENT, "utf8"))?.[1] ?? "";
  expect(session.match(/^>>> /gm)?.length).toBeGreaterThan(8);
  const input = session.replace("127.0.0.1:9090", flightAddress(engine));
  const [attempted, failed] = execFileSync(python, ["-c", DOCTEST], { input, env: cleanEnv(), encoding: "utf8" })
    .trim()
    .split(" ");
  expect([Number(attempted) > 8, failed]).toEqual([true, "0"]);
});
