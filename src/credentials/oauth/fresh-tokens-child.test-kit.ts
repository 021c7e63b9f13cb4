/**
 * A process of `tokens.pg.test.ts`: says that it is ready, waits for a line, asks for a fresh token many times at once,
 * and prints what it got.
 */
import { once } from "node:events";
import { AuditLog } from "../../auth/audit.ts";
import { ANONYMOUS } from "../../auth/caller.ts";
import { openTestCatalog } from "../../catalog/postgres/postgres.test-kit.ts";
import { systemClock } from "../../core/clock.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { silentLog } from "../../core/log.ts";
import { systemRandom } from "../../core/random.ts";
import { Credentials } from "../credentials.ts";
import { keyringOf } from "../../auth/sealing/keyring.ts";
import { APP, at, directoryOf } from "./provider.test-kit.ts";
import { OAuthTokens } from "./tokens.ts";

const [, , catalogUrl = "", providerUrl = "", key = "", credentialId = "", uses = "0"] = process.argv;

const catalog = await openTestCatalog(catalogUrl);
const newId = uuidV7Source(systemClock, systemRandom);
const audit = new AuditLog(catalog.records, newId);
const common = { newId, random: systemRandom, clock: systemClock, log: silentLog };
const credentials = new Credentials({ ...common, records: catalog.records, audit, keyring: keyringOf(key, []) });
const tokens = new OAuthTokens({
  ...common,
  credentials,
  catalog,
  providers: directoryOf(systemClock, { google: at(providerUrl) }, { google: APP }),
});
process.stdout.write("ready\n");
await once(process.stdin, "data");
const asked = Array.from({ length: Number(uses) }, () => tokens.fresh(credentialId, ANONYMOUS));
const outcomes = await Promise.allSettled(asked);
const got = outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : String(outcome.reason)));
process.stdout.write(`${JSON.stringify(got)}\n`);
await catalog.close();
process.stdin.destroy();
