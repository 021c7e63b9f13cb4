import { onPostgres } from "../../catalog/postgres/contract-server.test-kit.ts";
import { sandboxesContract } from "./contract.ts";
import { sandboxReportsContract } from "./contract-reports.ts";

onPostgres("sandboxes", (open) => {
  sandboxesContract("postgres", open);
  sandboxReportsContract("postgres", open);
});
