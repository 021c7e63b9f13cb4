import { onPostgres } from "../../../catalog/postgres/contract-server.test-kit.ts";
import { sessionsContract } from "./sessions.test-kit.ts";

onPostgres("sessions of the agent", (open) => sessionsContract("postgres", open));
