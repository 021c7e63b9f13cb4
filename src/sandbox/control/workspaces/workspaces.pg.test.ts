import { onPostgres } from "../../../catalog/postgres/contract-server.test-kit.ts";
import { workspacesContract } from "./contract.test-kit.ts";

onPostgres("workspaces", (open) => workspacesContract("postgres", open));
