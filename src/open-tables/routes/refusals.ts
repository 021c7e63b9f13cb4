import { EngineError } from "../../core/errors.ts";
import { defineRoute, type Route } from "../../server/route.ts";
import { common, NAMESPACE, namespacePath, ROOT, TABLE, tablePath } from "./catalog.ts";

/** What of the protocol writes: none of it is done here. */
const WRITES: readonly [method: Route["method"], path: string, what: string][] = [
  ["POST", `${ROOT}/namespaces`, "Create a database"],
  ["DELETE", NAMESPACE, "Drop a database"],
  ["POST", `${NAMESPACE}/properties`, "Set properties of a database"],
  ["POST", `${NAMESPACE}/tables`, "Create a table"],
  ["POST", `${NAMESPACE}/register`, "Register a table"],
  ["POST", TABLE, "Commit to a table"],
  ["DELETE", TABLE, "Drop a table"],
  ["POST", `${ROOT}/tables/rename`, "Rename a table"],
  ["POST", `${ROOT}/transactions/commit`, "Commit to several tables"],
  ["POST", `${NAMESPACE}/views`, "Create a view"],
];

const refusal = { ...common, responses: [], errors: ["method_not_allowed"] } as const;

function paramsOf(path: string) {
  if (path.includes("{table}")) return { params: tablePath };
  return path.includes("{namespace}") ? { params: namespacePath } : {};
}

/** Nothing of a request's body is read before it is refused. */
export const REFUSED_ROUTES = WRITES.map(([method, path, what]) =>
  defineRoute({
    ...refusal,
    method,
    path,
    ...paramsOf(path),
    summary: `${what}: refused`,
    description:
      "The catalog is there to be read. Rows are written by ingest, and tables made by the API of the server.",
    handler: () => async () => {
      throw new EngineError(
        "method_not_allowed",
        "this catalog is read-only: write by ingest, and make tables by the API",
      );
    },
  }),
);

/** Clients of earlier versions of the protocol ask for a token here. */
export const oauthTokenRoute = defineRoute({
  ...refusal,
  method: "POST",
  path: `${ROOT}/oauth/tokens`,
  role: "none",
  summary: "Ask for a token: refused",
  handler: () => async () => {
    throw new EngineError(
      "method_not_allowed",
      "this catalog gives out no tokens: configure the client with a token of the server (`token`, not `credential`)",
    );
  },
});
