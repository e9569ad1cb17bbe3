// A real geniemq for tests: $GENIEMQ_BINARY, or geniemq on the path, with an embedded server on a free port.

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const schema = `
name: people
kind: rows
key: id
columns:
  - {name: id, type: skip}
  - {name: age, type: number, edges: exact}
  - {name: sex, type: category}
  - {name: state, type: category}
  - {name: note, type: payload}
`;

export interface Person {
  id: string;
  age: number;
  sex: string;
  state: string;
}

/** Four people, and a crowd in no state. */
export const people: Person[] = [
  { id: "ann", age: 30, sex: "Female", state: "WA" },
  { id: "bob", age: 35, sex: "Male", state: "OR" },
  { id: "cyd", age: 35, sex: "Female", state: "OR" },
  { id: "dan", age: 52, sex: "Male", state: "WA" },
  ...Array.from({ length: 3000 }, (_, i) => ({ id: `p${i}`, age: 60 + (i % 37), sex: i % 3 ? "Male" : "Female", state: `S${i % 11}` })),
];

const binary = process.env["GENIEMQ_BINARY"] ?? "geniemq";

/** Serves people, with an embedded server or at another one, with more arguments. */
export class Worker {
  readonly dir = mkdtempSync(join(tmpdir(), "geniemq-client-"));
  url = "";
  private process?: ChildProcess;
  private readonly log: string[] = [];

  constructor(private readonly at = "", private readonly more: string[] = []) {}

  build(): void {
    writeFileSync(join(this.dir, "people.yaml"), schema);
    const note = (p: Person) => (p.id.startsWith("p") ? "x".repeat(4000) : `note of ${p.id}`);
    writeFileSync(join(this.dir, "people.csv"), "id,age,sex,state,note\n" + people.map((p) => `${p.id},${p.age},${p.sex},${p.state},${note(p)}\n`).join(""));
    const built = spawnSync(binary, ["build", "--schema", "people.yaml", "--input", "people.csv", "--output", "people.gmq"], { cwd: this.dir, encoding: "utf8" });
    if (built.error) throw new Error("no geniemq: build it (go build -o build/geniemq ./cmd/geniemq) and set GENIEMQ_BINARY to its path", { cause: built.error });
    if (built.status !== 0) throw new Error(built.stdout + built.stderr);
  }

  /** Starts, on the port of last time. One that was killed may leave the port busy for a moment. */
  async start(): Promise<void> {
    for (let i = 0; i < 60; i++) {
      if (await this.try()) return;
      await new Promise((done) => setTimeout(done, 500));
    }
    throw new Error("geniemq does not start:\n" + this.tail());
  }

  private async try(): Promise<boolean> {
    const listen = this.url.replace("nats://", "") || "127.0.0.1:0";
    const server = this.at ? ["--nats", this.at] : ["--nats-listen", listen, "--data-dir", "data"];
    const p = spawn(binary, ["serve", "--index", "people=people.gmq", ...server, "--admin", "off", "--engine", "cpu", ...this.more], {
      cwd: this.dir,
      stdio: ["ignore", "ignore", "pipe"],
    });
    return new Promise((done) => {
      createInterface({ input: p.stderr! }).on("line", (line) => {
        this.log.push(line);
        const found = /^NATS\s+(nats:\/\/\S+)/.exec(line);
        if (!found) return;
        this.url = found[1]!;
        this.process = p;
        done(true);
      });
      p.on("exit", () => done(false));
    });
  }

  /** The last lines of its log. */
  tail(): string {
    return this.log.slice(-60).join("\n");
  }

  async kill(): Promise<void> {
    const p = this.process;
    this.process = undefined;
    if (!p || p.exitCode !== null) return;
    const gone = once(p, "exit");
    p.kill("SIGKILL");
    await gone;
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** A nats-server of its own, $GENIEMQ_NATS_SERVER, whose messages are small. */
export class Server {
  private readonly dir = mkdtempSync(join(tmpdir(), "geniemq-client-"));
  private process?: ChildProcess;
  url = "";

  /** Starts a server whose messages are small; more is added to its configuration. */
  async start(maxPayload: number, more = ""): Promise<void> {
    const probe = createServer().listen(0, "127.0.0.1");
    await once(probe, "listening");
    const listen = `127.0.0.1:${(probe.address() as AddressInfo).port}`;
    probe.close();
    this.url = `nats://${listen}`;
    writeFileSync(join(this.dir, "nats.conf"), `listen: ${listen}\nmax_payload: ${maxPayload}\njetstream { store_dir: "${this.dir}" }\n${more}`);
    const p = (this.process = spawn(process.env["GENIEMQ_NATS_SERVER"]!, ["-c", join(this.dir, "nats.conf")], { stdio: ["ignore", "ignore", "pipe"] }));
    const log: string[] = [];
    await new Promise<void>((ready, failed) => {
      createInterface({ input: p.stderr! }).on("line", (line) => {
        log.push(line);
        if (line.includes("Server is ready")) ready();
      });
      p.on("error", failed);
      p.on("exit", () => failed(new Error(log.join("\n"))));
    });
  }

  async close(): Promise<void> {
    if (this.process && this.process.exitCode === null) {
      const gone = once(this.process, "exit");
      this.process.kill("SIGKILL");
      await gone;
    }
    rmSync(this.dir, { recursive: true, force: true });
  }
}
