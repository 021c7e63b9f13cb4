import { inDatabaseA, isFullAdmin, newName, type Sample } from "./sample.test-kit.ts";
import { jsonRequest, type TestCaller, type World } from "./world.test-kit.ts";

const SAVED = "/v1/saved-queries";
const HISTORY = "/v1/query-history";
const MISSING = "01890a5d-ac96-774b-bcce-b302099a8057";
const ok = () => 200;
const inA = (status: number, outside: number) => (caller: TestCaller | undefined) =>
  caller?.limit === "b" ? outside : status;

const newQuery = () => ({ name: newName(), text: "SELECT 1", database: "a", shared: true });
async function saved(world: World): Promise<string> {
  return `${SAVED}/${String((await world.admin("POST", SAVED, newQuery()))["id"])}`;
}
/** Of one that an admin shares. */
const ofOwner = (caller: TestCaller | undefined) =>
  isFullAdmin(caller) ? 200 : inDatabaseA(404)(caller) === 404 ? 404 : 403;

/** Of what people keep of their own. */
export const WORKBENCH_SAMPLES: Readonly<Record<string, Sample>> = {
  "GET /v1/saved-queries": { request: () => ({ method: "GET", path: SAVED }), answer: ok },
  "POST /v1/saved-queries": { request: () => jsonRequest("POST", SAVED, newQuery()), answer: inA(201, 404) },
  "GET /v1/saved-queries/{id}": {
    request: async (world) => ({ method: "GET", path: await saved(world) }),
    answer: inA(200, 404),
  },
  "PATCH /v1/saved-queries/{id}": {
    request: async (world) => jsonRequest("PATCH", await saved(world), { name: "new" }),
    answer: ofOwner,
  },
  "DELETE /v1/saved-queries/{id}": {
    request: async (world) => ({ method: "DELETE", path: await saved(world) }),
    answer: ofOwner,
  },
  "GET /v1/query-history": { request: () => ({ method: "GET", path: HISTORY }), answer: ok },
  "POST /v1/query-history": {
    request: () => jsonRequest("POST", HISTORY, { text: "SELECT 1", database: "a" }),
    answer: inA(201, 403),
  },
  "DELETE /v1/query-history": { request: () => ({ method: "DELETE", path: HISTORY }), answer: ok },
  "DELETE /v1/query-history/{id}": {
    request: () => ({ method: "DELETE", path: `${HISTORY}/${MISSING}` }),
    answer: ok,
  },
  "GET /v1/auth/settings": { request: () => ({ method: "GET", path: "/v1/auth/settings" }), answer: ok },
  "PUT /v1/auth/settings": {
    request: () => jsonRequest("PUT", "/v1/auth/settings", { settings: { theme: "dark" } }),
    answer: ok,
  },
};
