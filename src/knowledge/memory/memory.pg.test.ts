import { onPostgres } from "../../catalog/postgres/contract-server.test-kit.ts";
import { memoryContract } from "./contract.test-kit.ts";

onPostgres("memories", (open) => memoryContract("postgres", open));
