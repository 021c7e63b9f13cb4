import { jsonRequest, type TestCaller } from "./world.test-kit.ts";
import { newName, type Sample } from "./sample.test-kit.ts";

const ROOT = "/iceberg/v1";
const IN_A = `${ROOT}/namespaces/a`;
const EVENTS = `${IN_A}/tables/events`;

const ok = () => 200;
/** To whom the database `a` is not there. */
const inA = (status: number) => (caller: TestCaller | undefined) => (caller?.limit === "b" ? 404 : status);

const get = (path: string, answer: Sample["answer"]): Sample => ({ request: () => ({ method: "GET", path }), answer });
const refused = (method: string, path: string): Sample => ({
  request: () => (method === "POST" ? jsonRequest(method, path, {}) : { method, path }),
  answer: () => 405,
});

const ENGINES = "/v1/admin/query-engines";
const newQueryEngine = () => ({ name: newName(), kind: "trino", url: "http://127.0.0.1:1", catalog: "lake" });
/** An engine sees all databases. */
const ofAllDatabases = (status: number) => (caller: TestCaller | undefined) =>
  caller?.limit === "none" ? status : 403;

/** Of Iceberg's catalog protocol, and of the engines that read by it. */
export const OPEN_TABLE_SAMPLES: Readonly<Record<string, Sample>> = {
  "GET /iceberg/v1/config": get(`${ROOT}/config`, ok),
  "GET /iceberg/v1/namespaces": get(`${ROOT}/namespaces`, ok),
  "GET /iceberg/v1/namespaces/{namespace}": get(IN_A, inA(200)),
  "GET /iceberg/v1/namespaces/{namespace}/tables": get(`${IN_A}/tables`, inA(200)),
  "GET /iceberg/v1/namespaces/{namespace}/tables/{table}": get(EVENTS, inA(200)),
  "POST /iceberg/v1/namespaces/{namespace}/tables/{table}/metrics": {
    request: () => jsonRequest("POST", `${EVENTS}/metrics`, { "report-type": "scan-report" }),
    answer: inA(204),
  },
  "POST /iceberg/v1/namespaces": refused("POST", `${ROOT}/namespaces`),
  "DELETE /iceberg/v1/namespaces/{namespace}": refused("DELETE", IN_A),
  "POST /iceberg/v1/namespaces/{namespace}/properties": refused("POST", `${IN_A}/properties`),
  "POST /iceberg/v1/namespaces/{namespace}/tables": refused("POST", `${IN_A}/tables`),
  "POST /iceberg/v1/namespaces/{namespace}/register": refused("POST", `${IN_A}/register`),
  "POST /iceberg/v1/namespaces/{namespace}/tables/{table}": refused("POST", EVENTS),
  "DELETE /iceberg/v1/namespaces/{namespace}/tables/{table}": refused("DELETE", EVENTS),
  "POST /iceberg/v1/tables/rename": refused("POST", `${ROOT}/tables/rename`),
  "POST /iceberg/v1/transactions/commit": refused("POST", `${ROOT}/transactions/commit`),
  "POST /iceberg/v1/namespaces/{namespace}/views": refused("POST", `${IN_A}/views`),
  "POST /iceberg/v1/oauth/tokens": refused("POST", `${ROOT}/oauth/tokens`),
  "GET /v1/admin/query-engines": { request: () => ({ method: "GET", path: ENGINES }), answer: ofAllDatabases(200) },
  "POST /v1/admin/query-engines": {
    request: () => jsonRequest("POST", ENGINES, newQueryEngine()),
    answer: ofAllDatabases(201),
  },
  "POST /v1/admin/query-engines/{name}/test": {
    request: async (world) => {
      const { name } = await world.admin("POST", ENGINES, newQueryEngine());
      return jsonRequest("POST", `${ENGINES}/${String(name)}/test`, {});
    },
    // Nothing answers there.
    answer: ofAllDatabases(502),
  },
  "DELETE /v1/admin/query-engines/{name}": {
    request: async (world) => {
      const { name } = await world.admin("POST", ENGINES, newQueryEngine());
      return { method: "DELETE", path: `${ENGINES}/${String(name)}` };
    },
    answer: ofAllDatabases(200),
  },
};
