import { onPostgres } from "../../catalog/postgres/contract-server.test-kit.ts";
import { sandboxesContract } from "./contract.ts";
import { ownersContract } from "./contract-owners.ts";
import { sandboxReportsContract } from "./contract-reports.ts";
import { volumesContract } from "./contract-volumes.ts";

onPostgres("sandboxes", (open) => {
  sandboxesContract("postgres", open);
  ownersContract("postgres", open);
  sandboxReportsContract("postgres", open);
  volumesContract("postgres", open);
});
