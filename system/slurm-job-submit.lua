-- An example of a job_submit script for Slurm: a job of several nodes in the partition PARTITION gets idle nodes that are
-- near each other. Copy it as job_submit.lua beside slurm.conf, and set JobSubmitPlugins=lua there.
--
-- slurmctld waits for this script, so it must not call commands of Slurm. It reads the idle nodes from a file, which a
-- timer or cron writes every few seconds:
--     sinfo -h -p compact -t idle -o '%T %N' | awk '/^idle/ { print $2 }' | paste -sd, > IDLE.new && mv IDLE.new IDLE
-- (Slurm 22.05 counts drained nodes as idle; %T shows the difference.)
-- If the file is out of date, a job may request a node that another job has got meanwhile, and waits for it. A job that
-- names nodes, or for which there are too few idle nodes, is not changed.

local PARTITION = "compact"
local IDLE = "/run/slurm-idle"
local FABRICCTL = "fabricctl"

local function first_line(stream)
    local line = stream and stream:read("*l")
    if stream then stream:close() end
    return line
end

function slurm_job_submit(job, partitions, uid)
    local nodes = job.min_nodes
    if job.partition ~= PARTITION or job.req_nodes or nodes == slurm.NO_VAL or nodes < 2 then
        return slurm.SUCCESS
    end
    local idle = first_line(io.open(IDLE))
    if not idle or not idle:match("^[%w%[%],._-]+$") then
        return slurm.SUCCESS
    end
    local hosts = first_line(io.popen(string.format("%s place --nodes %d --quiet --from '%s' 2>/dev/null", FABRICCTL, nodes,
                                                    idle)))
    if hosts then
        job.req_nodes = hosts
        slurm.log_info("fabricd: %d nodes near to each other: %s", nodes, hosts)
    end
    return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
    return slurm.SUCCESS
end
