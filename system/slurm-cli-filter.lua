-- An example of a cli_filter script for Slurm: srun in an allocation starts near ranks on near hosts, without `fabricctl run`
-- in front. Copy it as cli_filter.lua beside slurm.conf on the hosts of srun, and set CliFilterPlugins=lua there.
--
-- FABRICD_RUN in the environment of srun selects the order, as in `fabricctl run`: --order, --grid 8x8x4 or --matrix FILE;
-- "off" selects Slurm's order. DEFAULT is for jobs without this variable.
--
-- A step keeps Slurm's order if srun has no allocation yet (Slurm then chooses hosts after this script), if its command names
-- hosts, their number or a mapping (-w, -x, -N, -m, -r), or if fabricctl has no answer.

local DEFAULT = "off"
local FABRICCTL = "fabricctl"

-- Options that srun got from its command line and its environment: name = value.
local function options_set(options)
    local set = {}
    local text = (slurm.json_cli_options(options) or ""):gsub('"argv": *%b[]', "")
    for name, value in text:gmatch('"([%w-]+)": *"?([^",}]*)') do
        set[name] = value
    end
    return set
end

-- Return whether -N is on the command line: from 24.05 on Slurm refuses it beside a list of hosts.
local function has_number_of_hosts(options)
    local words, file = {}, io.open("/proc/self/cmdline")
    for word in (file and file:read("*a") or ""):gmatch("%Z+") do words[#words + 1] = word end
    if file then file:close() end
    for i = 2, #words - #options.argv do
        if words[i]:match("^%-%-nodes") or words[i]:match("^%-[^-]*N") then return true end
    end
    return #words == 0
end

local function order_hosts(options)
    local how = os.getenv("FABRICD_RUN") or DEFAULT
    if options.type ~= "srun" or not os.getenv("SLURM_JOB_NODELIST") or not how:match("^%-%-[%w%s._/-]+$") then
        return
    end
    if has_number_of_hosts(options) then return end
    local set, command = options_set(options), ""
    for _, own in ipairs({"nodelist", "nodefile", "exclude", "distribution", "relative", "het-group"}) do
        if set[own] then return end
    end
    for _, name in ipairs({"ntasks", "ntasks-per-node", "cpus-per-task"}) do
        -- a number of the allocation gives way to those of the command
        local allocated = name:match("^ntasks") and set[name] == os.getenv("SLURM_" .. name:upper():gsub("-", "_"))
        if (set[name] or ""):match("^%d+$") and not allocated then
            command = command .. " --" .. name .. "=" .. set[name]
        end
    end
    local stream = io.popen(string.format("%s run --quiet --output - %s -- srun%s 2>/dev/null", FABRICCTL, how, command))
    local hosts = stream and stream:read("*a") or ""
    if stream then stream:close() end
    hosts = hosts:gsub("%s+$", ""):gsub("\n", ",")
    if hosts:match("^[%w,._-]+$") then
        options.nodelist = hosts
        options.distribution = "arbitrary"
    end
end

function slurm_cli_pre_submit(options, offset)
    pcall(order_hosts, options) -- never a reason for a job to fail
    return slurm.SUCCESS
end

function slurm_cli_setup_defaults(options, early)
    return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job, step)
    return slurm.SUCCESS
end
