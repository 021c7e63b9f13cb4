import { onPostgres } from "../catalog/postgres/contract-server.test-kit.ts";
import { fabricContract } from "./contract.ts";
import { jobLogsContract } from "./contract-logs.ts";
import { jobOwnersContract } from "./contract-owners.ts";
import { schedulesContract } from "./contract-schedules.ts";
import { workersContract } from "./contract-workers.ts";

onPostgres("the job fabric", (open) => {
  fabricContract("postgres", open);
  jobLogsContract("postgres", open);
  schedulesContract("postgres", open);
  workersContract("postgres", open);
  jobOwnersContract("postgres", open);
});
